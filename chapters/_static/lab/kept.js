// What the reader's GPU did, kept in this browser until the reader forgets it. Nothing is sent anywhere.

const PREFIX = "gpu-lab:";
export const FORMAT = 1;

/** The result of an experiment, or null; what an older page left in another format is not read. */
export function kept(experiment) {
  try {
    const found = JSON.parse(localStorage.getItem(PREFIX + experiment));
    return found?.format === FORMAT ? found : null;
  } catch {
    return null;
  }
}

/** Every result that is kept. */
export function all() {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).sort().map((key) => kept(key.slice(PREFIX.length))).filter(Boolean);
  } catch {
    return [];
  }
}

/** Keeps it; a browser that keeps nothing (private windows) is no mistake. */
export function keep(result) {
  try {
    localStorage.setItem(PREFIX + result.experiment, JSON.stringify(result));
  } catch {
    return;
  }
}

export function forget(experiment) {
  try {
    localStorage.removeItem(PREFIX + experiment);
  } catch {
    return;
  }
}

/** Hands `value` to the reader as a JSON file. */
export function download(value, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(value, null, 1)], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
