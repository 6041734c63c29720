#!/bin/sh
# usage: on_node.sh [OPTION...] NODE COMMAND...
# Runs a command of the shell on a stand-in for a node, as ssh does on a node: in its network namespace,
# with a host name and a /dev/shm of its own; on node lo, which is this machine, without.
while [ "${1#-}" != "$1" ]; do shift; done
node=$1
shift
test "$node" != lo || exec /bin/sh -c "$*"
exec ip netns exec "$node" unshare --uts sh -c 'hostname "$0"; mount -t tmpfs tmpfs /dev/shm; eval "$1"' "$node" "$*"
