//go:build linux && (amd64 || arm64)

package mpi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cluster is a head and the nodes that it has made, as the test sees them.
type cluster struct {
	head  *exec.Cmd
	place string   // a directory that all nodes share
	pids  []int    // of the nodes' processes 1, as the head counts; the first is of node 1
	nodes []string // their namespaces of processes
	off   []bool   // they were switched off
	alive int      // processes of each node that no job has started
}

// newCluster makes n nodes, which end with the test. Only make mpi makes them. The test is skipped
// if the machine forbids them also to root.
func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	if os.Getenv(requiredVariable) != "required" {
		t.Skip("make mpi makes stand-ins for nodes")
	}
	require.Zero(t, os.Geteuid(), "only root makes stand-ins for nodes")
	for _, tool := range []string{"ip", "nsenter"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "stand-ins for nodes need iproute2 and util-linux")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	c := &cluster{head: exec.Command(self), place: t.TempDir(), alive: 1}
	c.head.Env = append(os.Environ(), partVariable+"=head", nodesVariable+"="+strconv.Itoa(n), placeVariable+"="+c.place)
	c.head.SysProcAttr = &unix.SysProcAttr{Cloneflags: spaces}
	c.head.Stderr = os.Stderr
	in, err := c.head.StdinPipe()
	require.NoError(t, err)
	out, err := c.head.StdoutPipe()
	require.NoError(t, err)
	err = c.head.Start()
	const machine = "this machine forbids stand-ins for nodes also to root: "
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSPC) {
		t.Skip(machine + err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		in.Close()
		assert.NoError(t, c.head.Wait()) // the kernel has ended all of its processes, and those of its nodes
		for i, space := range c.nodes {
			assert.Empty(t, processesOf(space), nodeName(i+1))
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if why, ok := strings.CutPrefix(line, forbidden); ok {
			t.Skip(machine + why)
		}
		if line == "ready" {
			break
		}
		pid, space, _ := strings.Cut(line, " ")
		number, err := strconv.Atoi(pid)
		require.NoError(t, err, line)
		c.pids, c.nodes = append(c.pids, number), append(c.nodes, space)
	}
	require.Len(t, c.nodes, n, "the head has not made all nodes")
	c.off = make([]bool, n)
	// What a launcher starts instead of ssh. As by ssh, the environment does not go along.
	require.NoError(t, os.WriteFile(c.agent(), []byte(`#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
pid=$(cat "`+c.place+`/$1.pid"); shift
exec nsenter -t "$pid" -a -- env -i PATH="$PATH" HOME=/root TMPDIR="`+temporary(c.place)+`" sh -c "$*"
`), 0o700))
	for i, pid := range c.pids {
		require.NoError(t, os.WriteFile(filepath.Join(c.place, nodeName(i+1)+".pid"), []byte(strconv.Itoa(pid)), 0o600))
	}
	return c
}

// agent is the file of a program that starts commands on nodes, as ssh does.
func (c *cluster) agent() string { return filepath.Join(c.place, "agent") }

// command is a command on the head.
func (c *cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	e := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(c.head.Process.Pid), "-a", "--", name}, args...)...)
	e.WaitDelay = time.Second
	return e
}

// job is a launcher at work on the head.
type job struct {
	cluster   *cluster
	launcher  *exec.Cmd
	out, errs bytes.Buffer
}

// start starts a part on ranks of each node. Node 1 has the lowest ones, and so on.
func (c *cluster) start(t *testing.T, m mpi, perNode int, part string, env ...string) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime())
	env = append([]string{partVariable + "=" + part, "GOCCL_TIMEOUT=30s"}, env...)
	args := append([]string{"-c", `echo $$ > "$0"; exec "$@"`, c.launcherFile(), m.launcher}, m.args...)
	args = m.line(t, perNode*len(c.nodes), append(args, m.across(c, perNode, env)...)...)
	j := &job{cluster: c, launcher: c.command(ctx, "sh", args...)}
	j.launcher.Env = append(append(os.Environ(), "TMPDIR="+temporary(c.place)), env...)
	j.launcher.Stdout, j.launcher.Stderr = &j.out, &j.errs
	_, err := j.launcher.StdinPipe() // which must not end before the ranks: mpiexec would die of it
	require.NoError(t, err)
	require.NoError(t, j.launcher.Start())
	t.Cleanup(func() {
		cancel()
		_ = j.launcher.Wait() // again, unless the test has failed
		if t.Failed() {
			t.Log(j.said())
		}
	})
	return j
}

// launcherFile has the process of the launcher, as the head counts.
func (c *cluster) launcherFile() string { return filepath.Join(c.place, "launcher.pid") }

// wait waits until the launcher has ended, and the nodes have nothing of the job. It returns the launcher's error.
func (j *job) wait(t *testing.T) error {
	t.Helper()
	err := j.launcher.Wait()
	j.cluster.leavesNothing(t)
	return err
}

// interrupt asks the launcher to end, if it has not.
func (j *job) interrupt(t *testing.T) {
	t.Helper()
	j.cluster.do(t, `kill -TERM $(cat "`+j.cluster.launcherFile()+`") || true`)
}

// passes runs a part on ranks of each node, which must pass on all, and leave nothing there.
func (c *cluster) passes(t *testing.T, m mpi, perNode int, part string, env ...string) {
	t.Helper()
	j := c.start(t, m, perNode, part, env...)
	require.NoError(t, j.wait(t), "%s%s", &j.out, &j.errs)
	require.ElementsMatch(t, []byte(strings.Repeat("passed\n", perNode*len(c.nodes))), j.out.Bytes(), "%s", j.said()) // see mpi.passes
}

// do runs a command of the shell on the head.
func (c *cluster) do(t *testing.T, command string) (said string) {
	t.Helper()
	out, err := c.command(t.Context(), "sh", "-c", command).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}

// on runs a command of the shell on a node.
func (c *cluster) on(t *testing.T, i int, command string) (said string) {
	t.Helper()
	return c.do(t, fmt.Sprintf("%s %s '%s'", c.agent(), nodeName(i), command))
}

// leavesNothing waits until no process runs on the nodes, and none has left shared memory there.
func (c *cluster) leavesNothing(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		for i, space := range c.nodes {
			all := processesOf(space)
			if len(all) == 0 && c.off[i] {
				continue
			}
			if !assert.Len(t, all, c.alive, nodeName(i+1)) {
				continue
			}
			left, err := os.ReadDir(filepath.Join("/proc", all[0], "root/dev/shm"))
			assert.NoError(t, err)
			assert.Empty(t, left, nodeName(i+1))
		}
	}, 30*time.Second, 20*time.Millisecond)
}

// switchOff ends all processes of a node at once, and removes its link.
func (c *cluster) switchOff(t *testing.T, i int) {
	t.Helper()
	c.off[i-1] = true
	c.do(t, fmt.Sprint("kill -KILL ", c.pids[i-1]))
}

// link cuts a node's link, or joins it again: "down" or "up".
func (c *cluster) link(t *testing.T, i int, state string) {
	t.Helper()
	c.do(t, "ip link set "+nodeName(i)+" "+state)
}

// received returns how many bytes each node has received through its link.
func (c *cluster) received(t *testing.T) (bytes []int) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/net/dev", c.head.Process.Pid))
	require.NoError(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	bytes = make([]int, len(c.nodes))
	for _, line := range strings.Split(string(text), "\n") {
		for i := range bytes {
			if counters, ok := strings.CutPrefix(strings.TrimSpace(line), nodeName(i+1)+":"); ok {
				bytes[i], err = strconv.Atoi(strings.Fields(counters)[8]) // what the bridge's end has sent
				require.NoError(t, err)
			}
		}
	}
	return bytes
}

// processesOf returns the processes of a namespace of processes.
func processesOf(space string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if of, err := os.Readlink(dir + "/ns/pid"); err == nil && of == space {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}
