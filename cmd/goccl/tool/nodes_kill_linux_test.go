//go:build nodes

package tool

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/dist"
)

// These tests need root and iproute2. A node is a process 1, with namespaces, a network device and a
// /dev/shm of its own, behind a switch that is another one.

var (
	soakJobs = flag.Int("soak.jobs", 0, "number of jobs; 0: one of each kind")
	soakSeed = flag.Uint64("soak.seed", uint64(time.Now().UnixNano()), "chooses kinds, victims and moments")
	soakSide = flag.Int("soak.parallel", 2, "jobs at the same time")
	soakKind = flag.String("soak.kind", "", "only jobs of this kind")
)

func init() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "as-node":
		beNode()
	case len(os.Args) == 2 && os.Args[1] == "as-rank":
		beRank()
	case len(os.Args) == 3 && os.Args[1] == "as-flood":
		beFlood(os.Args[2])
	default:
		return
	}
	os.Exit(0)
}

// beNode is process 1 of a node, until its standard input ends.
func beNode() {
	name := os.Getenv("NODE")
	for _, err := range []error{
		syscall.Sethostname([]byte(name)),
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		syscall.Mount("tmpfs", "/dev/shm", "tmpfs", 0, ""),
		os.WriteFile("/dev/shm/hosts", []byte(os.Getenv("HOSTS")), 0o600),
		syscall.Mount("/dev/shm/hosts", "/etc/hosts", "", syscall.MS_BIND, ""),
		os.Remove("/dev/shm/hosts"),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	fmt.Println("ready")
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil {
			time.Sleep(10 * time.Millisecond) // no children
		}
	}
}

// beRank is a rank that calls others until it is killed, or as often as CALLS says.
func beRank() {
	calls, fails := 1<<30, os.Getenv("RANK") == os.Getenv("FAILS")
	if n, err := strconv.Atoi(os.Getenv("CALLS")); err == nil {
		calls = n
	}
	fmt.Println("up")
	if err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		fmt.Println("joined")
		data := make([]float32, 1<<14)
		for i := range calls {
			if fails && i == 20 {
				return errors.New("out of luck")
			}
			if err := dist.AllReduce(data[:1<<(i%15)], dist.Sum); err != nil {
				return err
			}
			time.Sleep(time.Millisecond) // the machine is shared
		}
		return dist.DestroyProcessGroup()
	}); err != nil {
		log.Fatal(err)
	}
}

// soakNode is a node, as the test sees it.
type soakNode struct {
	*exec.Cmd
	name, ip, space string
	launcher        *exec.Cmd
	out, err        *lockedBuffer
}

// kill kills all processes of the node. repair makes another one.
func (n *soakNode) kill() {
	_ = n.Process.Kill()
	_ = n.Wait() // it was killed
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// soakCluster is nodes behind a switch.
type soakCluster struct {
	t      *testing.T
	router *exec.Cmd
	nodes  []*soakNode
	port   int
	events []string
}

const soakRanks = 2 // of each node

// startSpace starts a process 1.
func startSpace(t *testing.T, name, hosts string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self, "as-node")
	c.Env = append(os.Environ(), "NODE="+name, "HOSTS="+hosts)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
	_, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err, "the machine forbids stand-ins for nodes")
	return c
}

// inSpace is a command in the namespaces of a process.
func inSpace(pid int, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(pid), "-n", "-p", "-m", "-u", "-i", "--"}, args...)...)
}

func (c *soakCluster) ip(pid int, line string) {
	out, err := inSpace(pid, append([]string{"ip"}, strings.Fields(line)...)...).CombinedOutput()
	require.NoError(c.t, err, "ip %s: %s", line, out)
}

func newSoakCluster(t *testing.T, count int) *soakCluster {
	require.Zero(t, os.Geteuid(), "namespaces need root")
	c := &soakCluster{t: t, router: startSpace(t, "switch", ""), nodes: make([]*soakNode, count), port: 20000}
	t.Cleanup(func() {
		_ = c.router.Process.Kill()
		_ = c.router.Wait()
		for _, n := range c.nodes {
			if n != nil {
				_ = n.Process.Kill()
				_ = n.Wait()
			}
		}
	})
	c.ip(c.router.Process.Pid, "link add sw0 type bridge")
	c.ip(c.router.Process.Pid, "link set sw0 up")
	for i := range c.nodes {
		c.makeNode(i)
	}
	return c
}

// makeNode starts a node, or another one instead of one that was killed.
func (c *soakCluster) makeNode(i int) {
	hosts := "127.0.0.1 localhost\n"
	for k := range c.nodes {
		hosts += fmt.Sprintf("10.9.8.%d n%d\n", k+1, k)
	}
	n := &soakNode{name: fmt.Sprintf("n%d", i), ip: fmt.Sprintf("10.9.8.%d", i+1)}
	n.Cmd = startSpace(c.t, n.name, hosts)
	pid, router := n.Process.Pid, c.router.Process.Pid
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	require.NoError(c.t, err)
	n.space, c.nodes[i] = space, n

	_ = inSpace(router, "ip", "link", "del", fmt.Sprintf("v%d", i)).Run() // of one that was killed
	c.ip(router, fmt.Sprintf("link add v%d type veth peer name eth0", i))
	out, err := exec.Command("nsenter", "-t", strconv.Itoa(router), "-n", "--", "ip", "link", "set", "eth0", "netns", strconv.Itoa(pid)).CombinedOutput() // by its number outside
	require.NoError(c.t, err, string(out))
	c.ip(router, fmt.Sprintf("link set v%d master sw0 up", i))
	address := fmt.Sprintf("link set eth0 address 02:00:00:00:00:%02x", i+1) // that of one that was killed, which the others remember
	for _, line := range []string{"link set lo up", address, "addr add " + n.ip + "/24 dev eth0", "link set eth0 up"} {
		c.ip(pid, line)
	}
}

// processes returns what runs on a node beside process 1: of each process the number outside, and
// its rank, "" if it is none.
func (n *soakNode) processes() map[int]string {
	found := make(map[int]string)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		dir := "/proc/" + e.Name()
		space, gone := os.Readlink(dir + "/ns/pid")
		if err != nil || gone != nil || space != n.space || pid == n.Process.Pid {
			continue
		}
		words, _ := os.ReadFile(dir + "/cmdline")
		environment, _ := os.ReadFile(dir + "/environ")
		found[pid] = ""
		if i := bytes.Index(environment, []byte("\x00RANK=")); i >= 0 && bytes.HasSuffix(words, []byte("as-rank\x00")) && !bytes.HasPrefix(words, []byte("goccl-")) {
			rank, _, _ := bytes.Cut(environment[i+6:], []byte{0})
			found[pid] = string(rank)
		}
	}
	return found
}

// leftBehind is what a job has left on a node.
func (n *soakNode) leftBehind() (all []string) {
	for pid := range n.processes() {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all = append(all, strings.ReplaceAll(string(words), "\x00", " "))
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/dev/shm/*", n.Process.Pid))
	return append(all, files...)
}

// soakJob is what happens to a job, and what its launchers then say.
type soakJob struct {
	name   string
	calls  int
	env    []string
	moment string // the line that all ranks have written before
	act    func(*soakCluster)
	status int
	want   []string // by node, of the launchers' standard error; "-": it was killed
}

// run runs a job on all nodes, and returns what is wrong.
func (c *soakCluster) run(j *soakJob, later time.Duration) (faults []string) {
	self, err := os.Executable()
	require.NoError(c.t, err)
	c.port++
	for i, n := range c.nodes {
		args := []string{self, "run", "--nnodes", strconv.Itoa(len(c.nodes)), "--node-rank", strconv.Itoa(i), "--rdzv-endpoint", fmt.Sprintf("n0:%d", c.port),
			"--pin=off", "-n", strconv.Itoa(soakRanks), self, "as-rank"}
		n.launcher, n.out, n.err = inSpace(n.Process.Pid, args...), new(lockedBuffer), new(lockedBuffer)
		n.launcher.Stdout, n.launcher.Stderr = n.out, n.err
		n.launcher.Env = append(os.Environ(), append(j.env, asProgram+"=1", "GOCCL_SECRET=a secret of these nodes", "TMPDIR=/dev/shm", fmt.Sprint("CALLS=", j.calls))...)
		require.NoError(c.t, n.launcher.Start())
	}
	ends := make(chan error, len(c.nodes))
	for _, n := range c.nodes {
		go func() { ends <- n.launcher.Wait() }()
	}

	limit := time.After(2 * time.Minute)
	for _, n := range c.nodes {
		for strings.Count(n.out.String(), "] "+j.moment+"\n") < soakRanks {
			select {
			case <-limit:
				for _, n := range c.nodes { // otherwise they run beside the next job
					n.kill()
				}
				return []string{"the ranks do not start"}
			case <-time.After(5 * time.Millisecond):
			}
			if strings.Contains(n.err.String(), "error") {
				break
			}
		}
	}
	time.Sleep(later) // the moment is part of what is tested
	j.act(c)
	for range c.nodes {
		select {
		case <-ends:
		case <-limit:
			faults = append(faults, "it does not end")
		}
	}
	if faults != nil {
		return faults
	}

	for i, n := range c.nodes {
		if j.want[i] == "-" {
			continue
		}
		if status := n.launcher.ProcessState.ExitCode(); status != j.status {
			faults = append(faults, fmt.Sprintf("node %d: status %d", i, status))
		}
		if !regexp.MustCompile("(?m)" + j.want[i]).MatchString(n.err.String()) {
			faults = append(faults, fmt.Sprintf("node %d: want %s", i, j.want[i]))
		}
		rest := n.leftBehind()
		for until := time.Now().Add(2 * time.Second); len(rest) > 0 && time.Now().Before(until); rest = n.leftBehind() {
			time.Sleep(10 * time.Millisecond) // keepers end by themselves
		}
		if len(rest) > 0 {
			faults = append(faults, fmt.Sprintf("node %d: left behind: %v", i, rest))
		}
	}
	return faults
}

// launcherOf returns the launcher of a node by its number outside.
func (n *soakNode) launcherOf() int {
	for pid := range n.processes() {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(words, []byte("\x00--nnodes\x00")) && !bytes.HasPrefix(words, []byte("nsenter")) && !bytes.HasPrefix(words, []byte("goccl-")) {
			return pid
		}
	}
	return 0
}

// soakKinds are what happens to jobs.
var soakKinds = []string{"nothing", "rank killed", "rank fails", "rank stopped", "launcher killed", "launcher 0 killed", "node killed", "node 0 killed",
	"link cut", "link 0 cut", "links between nodes cut", "flood", "signal"}

// draw draws a job of a kind.
func drawJob(kind string, r *rand.Rand, count int) *soakJob {
	j := &soakJob{name: kind, status: 1, moment: []string{"up", "joined"}[r.IntN(2)], calls: 1 << 30, act: func(*soakCluster) {}}
	rank, node := r.IntN(count*soakRanks), 1+r.IntN(count-1)
	all := func(text string, but ...int) {
		for i := range count {
			if slices.Contains(but, i) {
				j.want = append(j.want, "-")
			} else {
				j.want = append(j.want, text)
			}
		}
	}
	of := func(rank int) string {
		return fmt.Sprintf(`^goccl: error: rank %d \(node %d, host n%d, pid \d+\) was `, rank, rank/soakRanks, rank/soakRanks)
	}
	lost := func(node, why string) string {
		return `^goccl: error: node ` + node + ` \(host n` + node + `, ranks? [0-9, -]+\) was lost, after \S+: ` + why
	}
	const silent, dead = `(its host has not answered for 10s: |it does not answer: )`, `its launcher is gone`
	node0 := `^goccl: error: node 0, host n0, was lost: `

	switch kind {
	case "nothing", "flood":
		j.status, j.calls = 0, 100+r.IntN(200)
		all(`^(goccl: warning: .*\n)?$`)
		if kind == "flood" {
			j.act = func(c *soakCluster) { c.flood(node) }
		}
	case "rank killed":
		j.status = 137
		all(of(rank) + `the first to fail, after \S+: SIGKILL`)
		j.act = func(c *soakCluster) { c.signalRank(rank, syscall.SIGKILL) }
	case "rank fails":
		j.moment, j.env = "up", []string{fmt.Sprint("FAILS=", rank)}
		all(of(rank) + `the first to fail, after \S+: exit status 1`)
	case "rank stopped":
		j.moment, j.env = "joined", []string{"GOCCL_TIMEOUT=8s"}
		all(of(rank) + `waited for in vain: `)
		j.act = func(c *soakCluster) { c.signalRank(rank, syscall.SIGSTOP) }
	case "launcher killed":
		all(lost(fmt.Sprint(node), dead), node)
		j.act = func(c *soakCluster) { _ = syscall.Kill(c.nodes[node].launcherOf(), syscall.SIGKILL) }
	case "launcher 0 killed":
		all(node0+dead, 0)
		j.act = func(c *soakCluster) { _ = syscall.Kill(c.nodes[0].launcherOf(), syscall.SIGKILL) }
	case "node killed":
		all(lost(fmt.Sprint(node), "("+dead+"|"+silent+")"), node)
		j.act = func(c *soakCluster) { c.nodes[node].kill() }
	case "node 0 killed":
		all(node0+"("+dead+"|"+silent+")", 0)
		j.act = func(c *soakCluster) { c.nodes[0].kill() }
	case "link cut":
		all(lost(fmt.Sprint(node), silent))
		j.want[node] = node0 + silent
		j.act = func(c *soakCluster) { c.ip(c.router.Process.Pid, fmt.Sprintf("link set v%d down", node)) }
	case "link 0 cut":
		all(node0 + silent)
		j.want[0] = lost(fmt.Sprintf("[1-%d]", count-1), silent)
		j.want[0] = strings.Replace(j.want[0], "host n[", "host n[", 1)
		j.act = func(c *soakCluster) { c.ip(c.router.Process.Pid, "link set v0 down") }
	case "links between nodes cut":
		j.moment = "joined"
		all(`^goccl: error: rank [2-5] \(node [12], host n[12], pid \d+\) was the first to fail, `) // an end of the link
		j.act = func(c *soakCluster) {
			for i := 1; i < count; i++ {
				c.ip(c.router.Process.Pid, fmt.Sprintf("link set dev v%d type bridge_slave isolated on", i))
			}
		}
	case "signal":
		j.status = 143
		all(`^goccl: error: SIGTERM came after `)
		j.act = func(c *soakCluster) { _ = syscall.Kill(c.nodes[r.IntN(count)].launcherOf(), syscall.SIGTERM) }
	}
	return j
}

// signalRank sends a signal to a rank.
func (c *soakCluster) signalRank(rank int, s syscall.Signal) {
	for pid, is := range c.nodes[rank/soakRanks].processes() {
		if is == strconv.Itoa(rank) {
			_ = syscall.Kill(pid, s)
		}
	}
}

// flood lets a node connect to ports of node 0, among them that of the job, and send what is no
// handshake, until the job ends.
func (c *soakCluster) flood(node int) {
	self, err := os.Executable()
	require.NoError(c.t, err)
	flood := inSpace(c.nodes[node].Process.Pid, self, "as-flood", fmt.Sprintf("n0:%d", c.port))
	require.NoError(c.t, flood.Start())
	go func() { _ = flood.Wait() }()
}

// beFlood connects to a port, and to those that ranks may have, for a second.
func beFlood(endpoint string) {
	var held []net.Conn
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		for _, address := range []string{endpoint, fmt.Sprintf("n0:%d", 32768+rand.IntN(28000))} {
			if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
				_, _ = conn.Write([]byte("GOCCL-\x00\x01 and no more"))
				held = append(held, conn)
			}
		}
		if len(held) > 200 {
			_ = held[0].Close()
			held = held[1:]
		}
	}
}

// repair makes a cluster as good as new.
func (c *soakCluster) repair() {
	router := c.router.Process.Pid
	for i, n := range c.nodes {
		if syscall.Kill(n.Process.Pid, 0) != nil || n.ProcessState != nil || isZombie(n.Process.Pid) {
			_ = n.Wait()
			c.makeNode(i)
			continue
		}
		c.ip(router, fmt.Sprintf("link set v%d up", i))
		c.ip(router, fmt.Sprintf("link set dev v%d type bridge_slave isolated off", i))
	}
}

func isZombie(pid int) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return bytes.Contains(status, []byte("State:\tZ"))
}

// TestNodesKill kills ranks, launchers and nodes, cuts links, and floods.
func TestNodesKill(t *testing.T) {
	kinds := soakKinds
	if *soakKind != "" {
		kinds = strings.Split(*soakKind, ",")
	}
	r := rand.New(rand.NewPCG(*soakSeed, 0))
	if *soakJobs > 0 {
		all := kinds
		kinds = nil
		for range *soakJobs {
			kinds = append(kinds, all[r.IntN(len(all))])
		}
	}
	jobs := make(chan *soakJob, len(kinds))
	for _, kind := range kinds {
		jobs <- drawJob(kind, r, 3)
	}
	close(jobs)
	t.Logf("seed %d", *soakSeed)

	var running sync.WaitGroup
	var mu sync.Mutex
	count := make(map[string]int)
	for side := range *soakSide {
		c := newSoakCluster(t, 3)
		moments := rand.New(rand.NewPCG(*soakSeed, uint64(side)+1))
		running.Go(func() {
			for j := range jobs {
				begin := time.Now()
				faults := c.run(j, time.Duration(moments.IntN(300))*time.Millisecond)
				mu.Lock()
				if count[j.name]++; faults != nil {
					t.Errorf("%s, after %s, %v:\n%s", j.name, j.moment, time.Since(begin), strings.Join(faults, "\n"))
					for i, n := range c.nodes {
						t.Logf("node %d says: %s%s", i, n.err, lastOf(n.out.String()))
					}
				}
				mu.Unlock()
				c.repair()
				if slices.Contains(faults, "it does not end") {
					return
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d jobs: %v", len(kinds), count)
}

func lastOf(text string) string { return text[max(0, len(text)-300):] }
