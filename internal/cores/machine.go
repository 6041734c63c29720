package cores

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/cgroup"
)

// Core is a core of the machine.
type Core struct {
	ID   int   // the number of its first hyperthread
	CPUs []int // the hyperthreads that this process may use, ascending
	all  []int // its hyperthreads
}

// Machine is what determines which cores a job gets.
type Machine struct {
	Free   []Core       // node by node, and ascending in a node
	Held   []Core       // by other jobs
	Uneven bool         // some cores are faster than others
	Quota  cgroup.Limit // of CPU time
}

// Survey returns what a job that starts now would find.
func Survey() (Machine, error) {
	turn := takeTurn()
	defer release(turn)
	m, locks, err := survey()
	for _, l := range locks {
		release(l)
	}
	return m, err
}

// look returns the machine whose files are below root, "" for this one, with all cores free.
func look(root string, usable []int) Machine {
	s := system{root}
	m := Machine{Quota: cgroup.CPUQuota(root)}
	nodes, performance := s.nodes(), Parse(s.read("cpu_core/cpus"))
	index := map[int]int{} // in m.Free, of a core's ID
	speeds := map[string]bool{}
	for _, cpu := range usable {
		siblings := append(Parse(s.read(fmt.Sprintf("system/cpu/cpu%d/topology/thread_siblings_list", cpu))), cpu)
		id := slices.Min(siblings)
		i, seen := index[id]
		if !seen {
			i = len(m.Free)
			index[id] = i
			m.Free = append(m.Free, Core{ID: id, all: siblings})
		}

		m.Free[i].CPUs = append(m.Free[i].CPUs, cpu)
		speeds[fmt.Sprint(s.read(fmt.Sprintf("system/cpu/cpu%d/cpu_capacity", cpu)), slices.Contains(performance, cpu))] = true
	}

	m.Uneven = len(speeds) > 1
	slices.SortStableFunc(m.Free, func(a, b Core) int { return nodes[a.CPUs[0]] - nodes[b.CPUs[0]] })
	return m
}

// system is the directory /sys/devices below root.
type system struct{ root string }

// read returns a file without its newline, "" if it is unreadable.
func (s system) read(name string) string {
	text, _ := os.ReadFile(s.root + "/sys/devices/" + name)
	return strings.TrimSpace(string(text))
}

// nodes returns the NUMA node of every hyperthread.
func (s system) nodes() map[int]int {
	nodes := map[int]int{}
	for _, node := range Parse(s.read("system/node/online")) {
		for _, cpu := range Parse(s.read(fmt.Sprintf("system/node/node%d/cpulist", node))) {
			nodes[cpu] = node
		}
	}
	return nodes
}

// CPUs returns the hyperthreads of cores, ascending.
func CPUs(cores []Core) (all []int) {
	for _, c := range cores {
		all = append(all, c.CPUs...)
	}
	slices.Sort(all)
	return all
}
