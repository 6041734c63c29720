#!/bin/sh
# usage: on_nodes.sh "NODE..." RANKS COMMAND...
# Starts a command as so many ranks, with torch's variables, an equal number on each node.
nodes=$1 ranks=$2
shift 2
count=$(echo "$nodes" | wc -w) first=0 group=0 all=
address=10.231.78.1 interface=eth0
test "${nodes%% *}" != lo || address=127.0.0.1 interface=lo
each=$((ranks / count))
for node in $nodes; do
	start="MASTER_ADDR=$address MASTER_PORT=29541 WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$each GOCCL_SECRET=none GLOO_SOCKET_IFNAME=$interface GROUP_RANK=$group"
	"$(dirname "$0")/on_node.sh" "$node" "for i in \$(seq 0 $((each - 1))); do $start RANK=\$(($first + i)) LOCAL_RANK=\$i $* & all=\"\$all \$!\"; done
		for rank in \$all; do wait \$rank || status=1; done; exit \$status" &
	all="$all $!" first=$((first + each)) group=$((group + 1))
done
for node in $all; do wait "$node" || status=1; done
exit $status
