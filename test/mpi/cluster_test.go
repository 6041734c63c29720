//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/require"
)

// Nodes have names, processes and shared memory of their own, and links that join them.
func TestCluster(t *testing.T) {
	c := newCluster(t, 3)
	before := c.received(t)
	for i := range 3 {
		require.Equal(t, nodeName(i+1)+"\n", c.on(t, i+1, "hostname"))
		require.Equal(t, "mine\n", c.on(t, i+1, "[ -z \"$(ls /dev/shm)\" ] && echo mine > /dev/shm/file && cat /dev/shm/file && rm /dev/shm/file"))
	}
	c.leavesNothing(t)
	require.Contains(t, c.on(t, 1, "bash -c \"head -c 100000 /dev/zero > /dev/tcp/node3/1\" 2>&1 || echo refused"), "refused")
	after := c.received(t)
	require.Greater(t, after[2], before[2], "what node 1 sends to node 3")
	c.switchOff(t, 2)
	c.leavesNothing(t)
}

// The same programs as on one node pass between nodes, over TCP. No variable asks for MPI: the ranks choose it because they are on several
// nodes.
//
// Open MPI runs them to the end. MPICH's MPI_Finalize often hangs between nodes, with four ranks in a third of the jobs, and so it
// does from C: one rank waits for answers of another one, which waits for the launcher. The test therefore ends the job once all ranks have noted that all was right. MPICH needs
// UCX_TLS=tcp,self,posix: otherwise bytes take a way past the links, which real nodes do not have.
func TestNodes(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		for seed, l := range []struct{ nodes, perNode int }{{2, 1}, {2, 2}, {4, 1}} {
			t.Run(fmt.Sprintf("%dx%d", l.nodes, l.perNode), func(t *testing.T) {
				c := newCluster(t, l.nodes)
				passes := c.passes
				if m.name == "MPICH" {
					passes = c.isRight
				}
				t.Run("volume", func(t *testing.T) {
					before := c.received(t)
					passes(t, m, l.perNode, "volume")
					for i, after := range c.received(t) {
						require.Greater(t, after-before[i], volumeBytes, "what %s has received: it cannot know the sums without", nodeName(i+1))
					}
				})
				t.Run("program", func(t *testing.T) {
					passes(t, m, l.perNode, "program", "TEST_GOCCL_SEED="+strconv.Itoa(seed+4))
				})
				for _, part := range []string{"again", "missing", "mismatch"} {
					t.Run(part, func(t *testing.T) { passes(t, m, l.perNode, part) })
				}
			})
		}
	})
}

// isRight runs a part on ranks of each node, which must all note that they are right, and ends the job.
func (c *cluster) isRight(t *testing.T, m mpi, perNode int, part string, env ...string) {
	t.Helper()
	ranks := perNode * len(c.nodes)
	for rank := range ranks {
		_ = os.Remove(filepath.Join(c.place, strconv.Itoa(rank)))
	}
	j := c.start(t, m, perNode, part, append(env, notesVariable+"="+c.place)...)
	for rank := range ranks {
		require.Equal(t, "right", c.await(t, strconv.Itoa(rank)), "rank %d", rank)
	}
	j.interrupt(t)
	_ = j.wait(t)
}

const (
	volumeCalls, volumeCount = 4, 1 << 16
	volumeBytes              = volumeCalls * 8 * volumeCount
)

// volume sums tensors of random bits.
func volume() error {
	return inGroup(func(_ context.Context, rank int) error {
		size, err := dist.GetWorldSize()
		if err != nil {
			return err
		}
		all := make([]*rand.PCG, size)
		for i := range all {
			all[i] = rand.NewPCG(1, uint64(i))
		}
		for range volumeCalls {
			got, want := make([]uint64, volumeCount), make([]uint64, volumeCount)
			for i := range want {
				for r, source := range all {
					x := source.Uint64()
					want[i] += x
					if r == rank {
						got[i] = x
					}
				}
			}
			if err := dist.AllReduce(got, dist.Sum); err != nil {
				return err
			}
			for i := range want {
				if got[i] != want[i] {
					return fmt.Errorf("element %d is %d instead of %d", i, got[i], want[i])
				}
			}
		}
		return nil
	})
}

// A rank that dies ends the job: the launcher names it or its node, and ends all others.
func TestDeathOnNode(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		c := newCluster(t, 2)
		j := c.start(t, m, 2, "dies", notesVariable+"="+c.place, dyingVariable+"=3")
		require.Error(t, j.wait(t))
		require.Regexp(t, map[string]string{"Open MPI": "process rank 3 .* on node node2", "MPICH": "RUNNING AT node2"}[m.name], j.said())
	})
}

// Where the launcher lets ranks live, their errors name the one that died: at once if another rank lives on its node, which sees it and tells
// the others. Else the timeout names it, unless Open MPI reports the broken connection before: it does so to a rank whose message could not
// leave, by chance.
func TestSurvivorsOnNodes(t *testing.T) {
	for _, l := range []struct {
		nodes, perNode int
		dying, says    string
	}{
		{2, 2, "1", `peer lost: rank 1 \(pid \d+(, host \S+)?\) is gone`},
		{3, 1, "1", `timed out after 3s: waited for rank 1( \(host node2\))?,|peer lost: rank 1 \(pid \d+(, host node2)?\) is gone`},
		// A rank of the node that outlives the other one by a moment may tell of it.
		{2, 2, "2 3", `timed out after 3s: waited for ranks 2, 3( \(host node2\))?,|peer lost: rank [23] `},
	} {
		survives := func(t *testing.T, m mpi) {
			c := newCluster(t, l.nodes)
			m.args = append(m.args[:len(m.args):len(m.args)], m.survivors...)
			j := c.start(t, m, l.perNode, "dies", notesVariable+"="+c.place, dyingVariable+"="+l.dying)
			for rank := range l.nodes * l.perNode {
				if !strings.Contains(l.dying, strconv.Itoa(rank)) {
					require.Regexp(t, l.says, c.await(t, strconv.Itoa(rank)), "rank %d", rank)
				}
			}
			j.interrupt(t) // Open MPI's mpirun does not end then, though all ranks on other nodes have
			_ = j.wait(t)
		}
		t.Run(fmt.Sprintf("%dx%d/%s", l.nodes, l.perNode, l.dying), func(t *testing.T) {
			for _, m := range installed {
				if m.survivors != nil { // TestDeathOnNode has the others
					m.run(t, survives)
				}
			}
		})
	}
}

// A node that is switched off ends the job: the launcher loses what it runs there, and ends the ranks of the other nodes. Open MPI's
// often names the node; MPICH's fails an assertion of its own.
func TestNodeSwitchedOff(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		c := newCluster(t, 2)
		j := c.start(t, m, 2, "dies", notesVariable+"="+c.place)
		c.await(t, "running")
		c.switchOff(t, 2)
		require.Error(t, j.wait(t))
	})
}

// Ranks that reach each other no more name each other by the timeout, on both sides. Then the launcher ends.
func TestLinkCut(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		c := newCluster(t, 2)
		j := c.start(t, m, 2, "dies", notesVariable+"="+c.place)
		c.await(t, "running")
		c.link(t, 2, "down")
		for rank := range 4 {
			require.Regexp(t, `timed out after 3s: waited for `+[]string{`(rank 2|rank 3|ranks 2, 3) \(host node2\),`, `(rank 0|rank 1|ranks 0, 1) \(host node1\),`}[rank/2], c.await(t, strconv.Itoa(rank)), "rank %d", rank)
		}
		c.link(t, 2, "up")
		require.Error(t, j.wait(t))
	})
}

// await returns what a rank has left in a file.
func (c *cluster) await(t *testing.T, name string) (text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(c.place, name))
		text = string(b)
		return err == nil
	}, time.Minute, 10*time.Millisecond, "no file %s", name)
	return text
}

// said is all that the launcher has said.
func (j *job) said() string { return j.out.String() + j.errs.String() }
