package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

var (
	// overTCP is goccl between nodes, the reference there.
	overTCP = table.Contestant{Library: "goccl", Entry: "tcp"}
	// sockets move as many bytes between each two ranks, in both directions at once.
	sockets = table.Contestant{Library: "yardstick", Entry: "sockets"}
)

// thisMachine is the name of a node that needs no stand-in.
const thisMachine = "lo"

// setUpNodes sets up the comparison of all-reduces between nodes, which nodes.sh has made. No rank
// is bound: all nodes have the same cores.
func setUpNodes(ctx context.Context, o options, w workplace, stderr io.Writer) (comparison, error) {
	w.memory = "" // nodes do not see this machine's
	if err := w.build(ctx, gocclProgram); err != nil {
		return comparison{}, err
	}
	for _, name := range []string{"on_node.sh", "on_nodes.sh"} {
		path, err := w.write(name)
		if err == nil {
			err = os.Chmod(path, 0o700)
		}
		if err != nil {
			return comparison{}, err
		}
	}

	among := slices.DeleteFunc(slices.Clone(libraries), func(l library) bool { return l.name == "mpich" })
	peers, versions, err := setUpPeers(ctx, o, w, stderr, among, func(l library, entries []entry) []turn {
		launch := w.onNodes(o.nodes, entries[0].launch)
		if l.name == "openmpi" {
			launch = w.openMPIOnNodes(o.nodes, entries[0].launch)
		}
		return turnsOf(l, []entry{{overTCP.Entry, launch}})
	})
	goccl := func(c table.Contestant, memory string) []turn {
		return turnsOf(library{name: c.Library}, []entry{{c.Entry, w.onNodes(o.nodes, func(ranks int) child {
			return child{args: []string{filepath.Join(w.dir, "goccl_allreduce"), strconv.Itoa(ranks), memory}}
		})}})
	}
	return comparison{
		turns: slices.Concat(goccl(overTCP, "private"), goccl(sockets, "sockets"), peers),
		head: fmt.Sprintf("goccl, %s\nnodes %s; %d passes\nall-reduce, float32, sum, in place: median of the slowest rank in microseconds",
			versions, strings.Join(o.nodes, ", "), o.passes),
		file: "peers-nodes.csv",
		show: func(w io.Writer, rows []table.Row) { writeTables(w, rows, overTCP) },
	}, err
}

// onNodes returns a launch of a program on each rank, by torch's variables.
func (w workplace) onNodes(nodes []string, launch func(ranks int) child) func(ranks int) child {
	return func(ranks int) child {
		c, nodes := launch(ranks), nodesOf(nodes, ranks)
		return child{slices.Concat([]string{filepath.Join(w.dir, "on_nodes.sh"), strings.Join(nodes, " "), strconv.Itoa(ranks)}, c.args), slices.Concat(heapKept, c.env)}
	}
}

// nodesOf returns the nodes of so many ranks: this machine is one for each.
func nodesOf(nodes []string, ranks int) []string {
	if nodes[0] == thisMachine {
		return slices.Repeat(nodes[:1], ranks)
	}
	return nodes
}

// openMPIOnNodes returns a launch by an mpirun on the first node, which connects ranks of different
// nodes by TCP.
func (w workplace) openMPIOnNodes(nodes []string, launch func(ranks int) child) func(ranks int) child {
	return func(ranks int) child {
		c, slots, agent := launch(ranks), fmt.Sprintf(":%d", ranks/len(nodes)), filepath.Join(w.dir, "on_node.sh")
		where := []string{"-H", strings.Join(nodes, slots+",") + slots, "--mca", "plm_rsh_agent", agent}
		settings := []string{"pml ob1", "btl vader,tcp,self", "btl_tcp_if_include eth0", "oob_tcp_if_include eth0"}
		if nodes[0] == thisMachine {
			where, settings = []string{"--oversubscribe"}, []string{"pml ob1", "btl tcp,self", "btl_tcp_if_include lo"}
		}

		args := slices.Concat([]string{agent, nodes[0], c.args[0]}, where, []string{"--bind-to", "none"})
		for _, setting := range settings {
			args = append(append(args, "--mca"), strings.Fields(setting)...)
		}
		return child{append(args, c.args[1:]...), slices.Concat(heapKept, c.env)}
	}
}
