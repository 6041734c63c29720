package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each library's ranks start on their nodes.
func TestLaunchesOnNodes(t *testing.T) {
	w := workplace{dir: "/place"}
	program := func(int) child { return child{[]string{"mpirun", "-n", "4", "program"}, []string{"X=1"}} }

	c := w.openMPIOnNodes([]string{"node0", "node1"}, program)(4)
	require.Equal(t, "/place/on_node.sh node0 mpirun -H node0:2,node1:2 --mca plm_rsh_agent /place/on_node.sh --bind-to none --mca pml ob1 "+
		"--mca btl vader,tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 -n 4 program", strings.Join(c.args, " "))
	require.Contains(t, c.env, "X=1")
	c = w.openMPIOnNodes([]string{"lo"}, program)(2)
	require.Equal(t, "/place/on_node.sh lo mpirun --oversubscribe --bind-to none --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo -n 4 program", strings.Join(c.args, " "))
	c = w.onNodes([]string{"lo"}, program)(2)
	require.Equal(t, []string{"/place/on_nodes.sh", "lo lo", "2", "mpirun", "-n", "4", "program"}, c.args)
	c = w.onNodes([]string{"node0", "node1"}, program)(4)
	require.Equal(t, []string{"/place/on_nodes.sh", "node0 node1", "4", "mpirun", "-n", "4", "program"}, c.args)
}

// The script starts ranks with torch's variables, and fails if one of them does.
func TestRanksOnNodes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nodes are made of a Linux")
	}
	w := workplace{dir: t.TempDir()}
	_, err := w.write("on_nodes.sh")
	require.NoError(t, err)
	_, err = w.save("on_node.sh", "#!/bin/sh\nNODE=$1; export NODE; shift; eval \"$*\"\n") // on this machine
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "on_node.sh"), 0o700))

	run := func(command ...string) (string, error) {
		out, err := exec.Command("/bin/sh", append([]string{filepath.Join(w.dir, "on_nodes.sh"), "a b", "4"}, command...)...).Output()
		return string(out), err
	}
	out, err := run("/bin/sh", "-c", `'echo $NODE $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE'`)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a 0 4 0 2", "a 1 4 1 2", "b 2 4 0 2", "b 3 4 1 2"}, strings.Split(strings.TrimSpace(out), "\n"))
	_, err = run("/bin/sh", "-c", `'test $RANK != 2'`)
	require.Error(t, err)
}

// The yardstick moves bytes between ranks that are apart on this machine.
func TestSocketsAreMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the loopback interface has the name lo on Linux")
	}
	w := workplace{dir: t.TempDir()}
	c, err := setUpNodes(t.Context(), options{nodes: []string{thisMachine}, only: []string{"none"}}, w, io.Discard)
	require.ErrorContains(t, err, "there is no peer to compare with")
	for _, turn := range c.turns {
		rows, err := turn.measure(t.Context(), 3, options{sizes: []int{0, 4, 20004}, budget: time.Millisecond, limit: time.Minute})
		require.NoError(t, err)
		require.Len(t, rows, 3)
		require.Zero(t, rows[2].Errors)
	}
	require.Len(t, c.turns, 2)
}
