# Runs in the virtual machine, as root: observed.py in each setting. settings.sh COURSE OUTPUT
observed="$1/.venv/bin/python $1/autograder/tests/vm/observed.py"
exec >"$2" 2>&1
stty -F "$2" raw -echo
export PYTHONDONTWRITEBYTECODE=1 SETTING
cd /
ada="runuser -u ada -- env HOME=/home/ada XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus"

SETTING="root, cgroup v2" systemd-run --scope --quiet -p "Delegate=cpu memory pids" $observed
SETTING="ordinary user, cgroup v2 delegated" $ada systemd-run --user --scope --quiet -p "Delegate=cpu memory pids" $observed
SETTING="ordinary user, 1,024 descriptors, no delegation" $ada prlimit --nofile=1024:1024 $observed
sysctl -q kernel.unprivileged_userns_clone=0
SETTING="ordinary user, user namespaces forbidden" $ada $observed
chmod u+s /usr/bin/bwrap
SETTING="ordinary user, user namespaces forbidden, bwrap setuid" $ada $observed
echo "all settings were tried"
