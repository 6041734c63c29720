//go:build nodes

package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/require"
)

// These tests need root and iproute2: each node is a network namespace, behind a bridge. They are
// run by make nodes.

// asRank makes this test binary a rank of a job.
const asRank = "TEST_MESH_AS_RANK"

func TestMain(m *testing.M) {
	if os.Getenv(asRank) == "" {
		os.Exit(m.Run())
	}
	if err := runRank(); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
}

// runRank joins the others, and checks that each lane leads to the rank that it is of.
func runRank() error {
	l, err := launchenv.Detect(os.Getenv)
	if err != nil || l == nil {
		return fmt.Errorf("no rank: %w", err)
	}
	c, err := FromEnvironment(os.Getenv, &transport.Job{Size: l.Size, Launched: true, Rank: l.Rank, Origin: l.String(), Apart: l.Apart, Key: l.Key, Secret: l.Secret, Attempt: 1})
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(os.Getenv("TEST_MESH_LIMIT"))
	if err != nil {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	m, err := Connect(ctx, c)
	if err != nil {
		return err
	}

	var errs []error
	for _, lanes := range m.Conns {
		for lane, conn := range lanes {
			_, err := conn.Write([]byte{byte(c.Rank), byte(lane)})
			errs = append(errs, err)
		}
	}
	for peer, lanes := range m.Conns {
		for lane, conn := range lanes {
			got := make([]byte, 2)
			_, err := io.ReadFull(conn, got)
			if errs = append(errs, err); !bytes.Equal(got, []byte{byte(peer), byte(lane)}) {
				errs = append(errs, fmt.Errorf("lane %d to rank %d leads to %v", lane, peer, got))
			}
		}
	}
	fmt.Printf("rank %d of %d, of node %d, at %v, by %T\n", c.Rank, c.Size, c.Node, m.Conns[(c.Rank+c.Size/2)%c.Size][0].LocalAddr(), c.Rendezvous)
	if os.Getenv("RANK") == os.Getenv("TEST_MESH_FAILS") {
		return errors.New("out of luck")
	}
	return errors.Join(errs...)
}

// node is a network namespace, with a host name that all nodes know.
type node struct{ name, v4, v6, device string }

func run(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
}

// made is how often nodes were made.
var made rune

// makeNodes makes nodes that reach each other, and removes them when the test ends.
func makeNodes(t *testing.T, count int) (nodes []node) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	bridge := fmt.Sprintf("gcl%d%c", os.Getpid()%100000, 'a'+made) // a namespace that is removed lives on for a moment
	made++
	if out, err := exec.Command("ip", "link", "add", bridge, "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("this machine forbids network namespaces: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", bridge).Run() })
	run(t, "link", "set", bridge, "up")
	for i := range count {
		n := node{fmt.Sprintf("%s-%d", bridge, i), fmt.Sprintf("10.231.77.%d", i+1), fmt.Sprintf("fd31:77::%d", i+1), "eth7"}
		run(t, "netns", "add", n.name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.name).Run() })
		outside := fmt.Sprintf("%sv%d", bridge, i)
		run(t, "link", "add", outside, "type", "veth", "peer", "name", n.device, "netns", n.name)
		run(t, "link", "set", outside, "master", bridge, "up")
		for _, args := range []string{"addr add " + n.v4 + "/24 dev eth7", "addr add " + n.v6 + "/64 dev eth7 nodad", "link set eth7 up", "link set lo up"} {
			run(t, append([]string{"-n", n.name}, strings.Fields(args)...)...)
		}
		nodes = append(nodes, n)
	}

	hosts := "127.0.0.1 localhost\n::1 localhost\n"
	for _, n := range nodes {
		hosts += n.v4 + " " + n.name + "\n"
	}
	for _, n := range nodes {
		dir := filepath.Join("/etc/netns", n.name) // ip netns exec shows it as /etc
		require.NoError(t, os.MkdirAll(dir, 0o755))
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		require.NoError(t, os.WriteFile(filepath.Join(dir, "hosts"), []byte(hosts), 0o644))
	}
	return nodes
}

// command is a program on a node, with variables.
func (n node) command(ctx context.Context, v variables, program ...string) (*exec.Cmd, *bytes.Buffer) {
	c := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.name, "unshare", "--uts", "sh", "-c", `hostname "$0"; exec "$@"`, n.name}, program...)...)
	c.Env = append(os.Environ(), asRank+"=1")
	for name, value := range v {
		c.Env = append(c.Env, name+"="+value)
	}
	out := new(bytes.Buffer)
	c.Stdout, c.Stderr, c.WaitDelay = out, out, time.Second
	return c, out
}

// runAll runs programs at the same time, and returns what they wrote and how they ended.
func runAll(commands []*exec.Cmd) (errs []error) {
	errs = make([]error, len(commands))
	var running sync.WaitGroup
	for i, c := range commands {
		running.Go(func() { errs[i] = c.Run() })
	}
	running.Wait()
	return errs
}

// runByHand runs a job of two ranks on each node, with torch's variables.
func runByHand(t *testing.T, nodes []node, v variables, without ...int) (outs []string, errs []error) {
	self, err := os.Executable()
	require.NoError(t, err)
	var commands []*exec.Cmd
	var buffers []*bytes.Buffer
	for rank := range 2 * len(nodes) {
		if len(without) > 0 && without[0] == rank {
			continue
		}
		c, out := nodes[rank/2].command(bounded(t), variables{"RANK": fmt.Sprint(rank), "WORLD_SIZE": fmt.Sprint(2 * len(nodes)), "LOCAL_RANK": fmt.Sprint(rank % 2), "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": fmt.Sprint(rank / 2),
			"MASTER_ADDR": nodes[0].v4, "MASTER_PORT": "29517", "GOCCL_SECRET": secret}.with(v), self)
		commands, buffers = append(commands, c), append(buffers, out)
	}
	errs = runAll(commands)
	for _, b := range buffers {
		outs = append(outs, b.String())
	}
	return outs, errs
}

func TestNodesByHand(t *testing.T) {
	nodes := makeNodes(t, 3)
	for _, v := range []variables{{}, {"MASTER_ADDR": nodes[0].v6}, {"MASTER_ADDR": nodes[0].name}, {"GOCCL_INTERFACE": "eth7"}, {"GLOO_SOCKET_IFNAME": "eth7"}, {"GOCCL_SECRET": "none"}} {
		outs, errs := runByHand(t, nodes, v)
		for rank, out := range outs {
			require.NoError(t, errs[rank], out)
			require.Contains(t, out, fmt.Sprintf("rank %d of 6, of node %d, at ", rank, rank/2))
			if v["MASTER_ADDR"] == nodes[0].v6 {
				require.Contains(t, out, nodes[rank/2].v6)
			} else {
				require.Contains(t, out, nodes[rank/2].v4)
			}
		}
	}

	outs, errs := runByHand(t, nodes, variables{"GOCCL_SECRET": ""})
	for rank, out := range outs {
		require.Error(t, errs[rank])
		require.Contains(t, out, "(umask 077; head -c 24 /dev/urandom | base64 >secret)")
	}
	outs, errs = runByHand(t, nodes, variables{"TEST_MESH_LIMIT": "2s"}, 3)
	for i, out := range outs {
		require.Error(t, errs[i])
		require.Contains(t, out, "waited for rank 3, which did not join")
		require.Contains(t, out, "rank 3 should be on host "+nodes[1].name)
	}
}

// TestNodesNameOfLoopback has a node whose own name stands for an address of loopback, as Debian installs
// it: its ranks reach rank 0 by that, and the other nodes reach them nevertheless.
func TestNodesNameOfLoopback(t *testing.T) {
	nodes := makeNodes(t, 2)
	hosts := filepath.Join("/etc/netns", nodes[0].name, "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost\n127.0.1.1 "+nodes[0].name+"\n"), 0o644))
	outs, errs := runByHand(t, nodes, variables{"MASTER_ADDR": nodes[0].name, "TEST_MESH_LIMIT": "20s"})
	for rank, out := range outs {
		require.NoError(t, errs[rank], out)
		require.Contains(t, out, " at "+nodes[rank/2].v4)
	}
}

// TestNodesOfTorchrun starts two agents, in both kinds of rendezvous. In the static one, and in c10d
// of later versions, MASTER_PORT is the agent's store.
func TestNodesOfTorchrun(t *testing.T) {
	torchrun := strings.Fields(os.Getenv("TORCHRUN"))
	if len(torchrun) == 0 {
		path, err := exec.LookPath("torchrun")
		if err != nil {
			t.Skip("torchrun is not installed (Debian has it in python3-torch; TORCHRUN may have its command line)")
		}
		torchrun = []string{path}
	}
	nodes := makeNodes(t, 2)
	self, err := os.Executable()
	require.NoError(t, err)

	for _, rendezvous := range [][]string{
		{"--master_addr", nodes[0].v4, "--master_port", "29519"},
		{"--rdzv_backend", "c10d", "--rdzv_id", "mesh", "--rdzv_endpoint", nodes[0].v4 + ":29521"},
	} {
		var commands []*exec.Cmd
		var outs []*bytes.Buffer
		for i, n := range nodes {
			args := append(append([]string{}, torchrun...), "--nnodes", "2", "--nproc_per_node", "2", "--no_python",
				"--redirects", "9:3", "--tee", "9:3") // of no rank: torch 1.13 does not read its own default under Python 3.11
			if rendezvous[0] == "--master_addr" {
				args = append(args, "--node_rank", fmt.Sprint(i))
			} else {
				args = append(args, "--rdzv_conf", fmt.Sprintf("is_host=%t", i == 0))
			}
			c, out := n.command(bounded(t), variables{"GOCCL_SECRET": secret, "OMP_NUM_THREADS": "1"}, append(append(args, rendezvous...), self)...)
			commands, outs = append(commands, c), append(outs, out)
		}
		errs := runAll(commands)
		for i, out := range outs {
			require.NoError(t, errs[i], out)
			require.Contains(t, out.String(), fmt.Sprintf(" of 4, of node %d, at %s", i, nodes[i].v4), rendezvous[0])
			if rendezvous[0] == "--master_addr" {
				require.Contains(t, out.String(), "by *mesh.agentStore")
			}
		}
	}
}

// TestNodesOfGocclRun starts two launchers, on two nodes. One rank fails, and both end.
func TestNodesOfGocclRun(t *testing.T) {
	goccl := filepath.Join(t.TempDir(), "goccl")
	out, err := exec.Command("go", "build", "-o", goccl, "github.com/goccl/goccl/cmd/goccl").CombinedOutput()
	require.NoError(t, err, string(out))
	self, err := os.Executable()
	require.NoError(t, err)
	nodes := makeNodes(t, 2)

	for fails, status := range map[string]int{"none": 0, "1": 3, "2": 3} {
		var commands []*exec.Cmd
		var outs []*bytes.Buffer
		for i, n := range nodes {
			c, out := n.command(bounded(t), variables{"GOCCL_SECRET": secret, "TEST_MESH_FAILS": fails}, goccl, "run", "--nnodes", "2", "--node-rank", fmt.Sprint(i), "--rdzv-endpoint", nodes[0].v4+":29523", "-n", "2", self)
			commands, outs = append(commands, c), append(outs, out)
		}
		_ = runAll(commands)
		for i, c := range commands {
			require.Equal(t, status, c.ProcessState.ExitCode(), outs[i])
			require.Contains(t, outs[i].String(), fmt.Sprintf(" of 4, of node %d, at %s", i, nodes[i].v4))
		}
		if status != 0 {
			require.Contains(t, outs[0].String(), "rank "+fails+" (node "+string(rune('0'+fails[0]/'2'))+", host "+nodes[fails[0]/'2'].name+", pid ")
			require.Contains(t, outs[1].String(), "rank "+fails+" (node ")
		}
	}
}

// TestNodesLogicalShards trains on one to seven nodes in turns, with one or two ranks each. A training of
// logical shards that goes on with other ranks has the weights of its definition.
func TestNodesLogicalShards(t *testing.T) {
	dir := t.TempDir()
	tests := filepath.Join(dir, "tests")
	out, err := exec.Command("go", "test", "-c", "-o", tests, "github.com/goccl/goccl/ddp").CombinedOutput()
	require.NoError(t, err, string(out))
	nodes := makeNodes(t, 7)
	for step, ranks := range []int{5, 1, 8, 3, 2, 7, 4, 6} {
		perNode := 2 - ranks%2
		var commands []*exec.Cmd
		var outs []*bytes.Buffer
		for rank := range ranks {
			c, out := nodes[rank/perNode].command(bounded(t), variables{
				"RANK": fmt.Sprint(rank), "WORLD_SIZE": fmt.Sprint(ranks), "LOCAL_RANK": fmt.Sprint(rank % perNode), "LOCAL_WORLD_SIZE": fmt.Sprint(perNode), "GROUP_RANK": fmt.Sprint(rank / perNode),
				"MASTER_ADDR": nodes[0].v4, "MASTER_PORT": fmt.Sprint(29525 + 2*step), "GOCCL_SECRET": secret,
				"TEST_DDP_WORK": "shards resumed", "TEST_DDP_SHARDS": fmt.Sprintf("%d %d %s", step, step+1, dir),
			}, tests)
			commands, outs = append(commands, c), append(outs, out)
		}
		for rank, err := range runAll(commands) {
			require.NoError(t, err, outs[rank])
			require.NoError(t, os.Remove(filepath.Join(dir, fmt.Sprint(rank))), outs[rank])
		}
	}
}
