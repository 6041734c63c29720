package cores

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/cgroup"
)

// computer describes a machine of /sys.
type computer struct {
	siblings    [][]int // of each core
	nodes       []string
	capacity    map[int]string
	performance string // the hyperthreads of Intel's fast cores
	quota       string
}

// root writes the computer's files.
func (c computer) root(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o700))
		require.NoError(t, os.WriteFile(root+name, []byte(text+"\n"), 0o600))
	}
	for _, siblings := range c.siblings {
		for _, cpu := range siblings {
			write(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu), Format(siblings))
		}
	}
	for node, cpus := range c.nodes {
		write(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", node), cpus)
	}
	if len(c.nodes) > 0 {
		write("/sys/devices/system/node/online", fmt.Sprintf("0-%d", len(c.nodes)-1))
	}
	for cpu, capacity := range c.capacity {
		write(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu), capacity)
	}
	if c.performance != "" {
		write("/sys/devices/cpu_core/cpus", c.performance)
	}
	if c.quota != "" {
		write("/proc/self/mountinfo", "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
		write("/proc/self/cgroup", "0::/")
		write("/sys/fs/cgroup/cpu.max", c.quota)
	}
	return root
}

var (
	two   = computer{siblings: [][]int{{0}, {1}}, nodes: []string{"0-1"}}
	four  = computer{siblings: [][]int{{0}, {1}, {2}, {3}}, nodes: []string{"0-3"}}
	smt   = computer{siblings: [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, nodes: []string{"0-7"}}
	pairs = computer{siblings: [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, nodes: []string{"0-7"}}
	// The numbers alternate between two sockets.
	sockets = computer{siblings: [][]int{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}, nodes: []string{"0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"}}
	// Offline hyperthreads are in no list, and their numbers stay free.
	holes = computer{siblings: [][]int{{0, 16}, {3}, {7, 23}}, nodes: []string{"0,16", "3,7,23"}}
)

// Every rank gets whole cores of its own, or none does.
func TestShares(t *testing.T) {
	const each = " ranks cannot have a core each: "
	for name, c := range map[string]struct {
		machine computer
		usable  string
		ranks   int
		insist  bool
		want    []string
		err     string
	}{
		"a core each":          {machine: two, usable: "0-1", ranks: 2, want: []string{"0", "1"}},
		"all cores":            {machine: four, usable: "0-3", ranks: 2, want: []string{"0-1", "2-3"}},
		"one more":             {machine: four, usable: "0-3", ranks: 3, want: []string{"0", "1", "2-3"}},
		"one rank":             {machine: four, usable: "0-3", ranks: 1, want: []string{"0-3"}},
		"too many":             {machine: two, usable: "0-1", ranks: 3, err: "3" + each + "this process may use 2"},
		"too many, insisting":  {machine: two, usable: "0-1", ranks: 3, insist: true, err: "3" + each + "this process may use 2"},
		"part of the machine":  {machine: four, usable: "1,3", ranks: 2, want: []string{"1", "3"}},
		"too small a part":     {machine: four, usable: "3", ranks: 2, err: "2" + each + "this process may use 1"},
		"siblings":             {machine: smt, usable: "0-7", ranks: 4, want: []string{"0,4", "1,5", "2,6", "3,7"}},
		"siblings, two cores":  {machine: smt, usable: "0-7", ranks: 2, want: []string{"0-1,4-5", "2-3,6-7"}},
		"adjacent siblings":    {machine: pairs, usable: "0-7", ranks: 3, want: []string{"0-1", "2-3", "4-7"}},
		"one of two siblings":  {machine: smt, usable: "0-2,5", ranks: 3, want: []string{"0", "1,5", "2"}},
		"hyperthreads":         {machine: smt, usable: "0-7", ranks: 8, err: "8" + each + "this process may use 4, with 8 hyperthreads"},
		"insisting on threads": {machine: smt, usable: "0-7", ranks: 8, insist: true, want: []string{"0", "4", "1", "5", "2", "6", "3", "7"}},
		"insisting on cores":   {machine: smt, usable: "0-7", ranks: 3, insist: true, want: []string{"0,4", "1,5", "2-3,6-7"}},
		"too few threads":      {machine: smt, usable: "0-7", ranks: 9, insist: true, err: "9" + each + "this process may use 4, with 8 hyperthreads"},
		"node by node":         {machine: sockets, usable: "0-15", ranks: 4, want: []string{"0,2,8,10", "4,6,12,14", "1,3,9,11", "5,7,13,15"}},
		"a node each":          {machine: sockets, usable: "0-15", ranks: 2, want: []string{"0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"}},
		"a part of each node":  {machine: sockets, usable: "0-3,9", ranks: 4, want: []string{"0", "2", "1,9", "3"}},
		"holes":                {machine: holes, usable: "0,3,7,16,23", ranks: 3, want: []string{"0,16", "3", "7,23"}},
		"nothing is known":     {usable: "0-1,5", ranks: 3, want: []string{"0", "1", "5"}},
		"a quota":              {machine: four.with("200000 100000"), usable: "0-3", ranks: 2, want: []string{"0-1", "2-3"}},
		"no quota":             {machine: four.with("max 100000"), usable: "0-3", ranks: 4, want: []string{"0", "1", "2", "3"}},
		"a small quota": {machine: four.with("150000 100000"), usable: "0-3", ranks: 2,
			err: "2" + each + "the quota of CPU time is 1.5 cores (/sys/fs/cgroup/cpu.max)"},
		"a small quota, insisting": {machine: four.with("150000 100000"), usable: "0-3", ranks: 2, insist: true,
			err: "2" + each + "the quota of CPU time is 1.5 cores (/sys/fs/cgroup/cpu.max)"},
		"uneven":            {machine: uneven, usable: "0-5", ranks: 2, err: "some of the cores are faster than others"},
		"uneven, insisting": {machine: uneven, usable: "0-5", ranks: 2, insist: true, want: []string{"0-3", "4-5"}},
		"the fast ones":     {machine: uneven, usable: "0-3", ranks: 2, want: []string{"0-1", "2-3"}},
		"uneven by Arm":     {machine: little, usable: "0-3", ranks: 2, err: "some of the cores are faster than others"},
		"the slow ones":     {machine: little, usable: "0-1", ranks: 2, want: []string{"0", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := look(c.machine.root(t), Parse(c.usable))
			shares, err := m.share(c.ranks, c.insist)
			if c.err != "" {
				require.EqualError(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			var got []string
			for _, s := range shares {
				got = append(got, Format(s))
			}
			require.Equal(t, c.want, got)
			if c.ranks > 1 && !c.insist {
				require.Equal(t, c.err == "", c.ranks <= m.Ranks(), "Ranks agrees")
			}
		})
	}
}

func (c computer) with(quota string) computer {
	c.quota = quota
	return c
}

var (
	// Two fast cores with hyperthreads and two slow ones without.
	uneven = computer{siblings: [][]int{{0, 1}, {2, 3}, {4}, {5}}, performance: "0-3"}
	little = computer{siblings: four.siblings, capacity: map[int]string{0: "446", 1: "446", 2: "1024", 3: "1024"}}
)

// Cores that other jobs hold are skipped.
func TestHeld(t *testing.T) {
	m := look(smt.root(t), Parse("0-7"))
	m.Held, m.Free = m.Free[1:2], append([]Core{m.Free[0]}, m.Free[2:]...)
	shares, err := m.share(3, false)
	require.NoError(t, err)
	require.Equal(t, [][]int{{0, 4}, {2, 6}, {3, 7}}, shares)
	_, err = m.share(4, false)
	require.EqualError(t, err, "4 ranks cannot have a core each: this process may use 4, with 8 hyperthreads, and other jobs of goccl run hold 1 of them")
	_, err = m.share(7, true)
	require.EqualError(t, err, "7 ranks cannot have a core each: this process may use 4, with 8 hyperthreads, and other jobs of goccl run hold 1 of them")
	require.Equal(t, 3, m.Ranks())
}

// The quota of this machine is the one that package cgroup finds.
func TestQuota(t *testing.T) {
	require.Equal(t, cgroup.Limit{Value: 1.5, File: "/sys/fs/cgroup/cpu.max"}, look(four.with("150000 100000").root(t), nil).Quota)
	require.Equal(t, cgroup.Limit{}, look(four.with("max 100000").root(t), nil).Quota)
}

func TestLists(t *testing.T) {
	for list, want := range map[string][]int{
		"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,8,10-11": {0, 1, 8, 10, 11}, "": nil, "x": nil, "3-0": nil, "0-": nil,
	} {
		require.Equal(t, want, Parse(list), list)
		if want != nil {
			require.Equal(t, list, Format(want))
		}
	}
	require.Empty(t, Format(nil))
}
