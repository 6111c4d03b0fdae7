@group(0) @binding(0) var<uniform> frame: vec4f;  // width, height, sun's x, sun's z

@vertex fn corners(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
  return vec4f(f32(i % 2) * 4 - 1, f32(i / 2) * 4 - 1, 0, 1);  // one triangle that covers the screen
}

@fragment fn moon(@builtin(position) pixel: vec4f) -> @location(0) vec4f {
  let radius = 0.45 * frame.y;
  let x = (pixel.x - frame.x / 2) / radius;
  let y = (pixel.y - frame.y / 2) / radius;
  let rest = 1 - x * x - y * y;
  var light = 0.0;
  if (rest > 0) {
    light = max(frame.z * x - 0.48 * y + frame.w * sqrt(rest), 0.0);
  }
  return vec4f(light, light, light, 1);
}
