package tool

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/internal/launcher"
)

// nodesTime is how long the nodes wait for each other, and answerTime how long for one answer.
const (
	nodesTime  = time.Minute
	answerTime = 5 * time.Second
)

// purposeDoctor is the purpose of its connections, in which the handshake is of no interest.
const purposeDoctor = 4

// nodeFacts is what a node says of itself.
type nodeFacts struct {
	Host, Address, Version string
	MTU                    int
	Values                 map[string]config.Setting // of its configuration
	Invalid                string                    // why it has none
}

// examineNodes examines this node beside others, and reports what all have found, by node.
func (c *doctorCommand) examineNodes(ctx context.Context, stderr stderr, report func(doctor.Finding)) error {
	n, err := c.nodes(&runLog{text: stderr})
	if err != nil {
		return usageError{err}
	}
	limit := cmp.Or(n.Timeout, nodesTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%v have passed", limit))
	defer cancel()

	found, err := examineNode(ctx, n)
	for _, f := range slices.Concat(found...) {
		report(f)
	}
	if err != nil {
		report(nodeFinding(n.Rank, doctor.Problem, err.Error(), "give the same command on all nodes, each with its --node-rank, and --node-rank 0 on the host of "+
			n.Endpoint+"; if it runs there, a firewall or another program may hold the port"))
	}
	return nil
}

func nodeFinding(node int, v doctor.Verdict, says, do string) doctor.Finding {
	return doctor.Finding{Part: doctor.PartNodes, Name: fmt.Sprint("node ", node), Verdict: v, Says: says, Do: do}
}

// examineNode examines this node, and returns what all have found.
func examineNode(ctx context.Context, n launcher.Nodes) ([][]doctor.Finding, error) {
	all, err := n.Connect(ctx, "goccl doctor")
	if err != nil {
		return nil, err
	}
	defer all.Close()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: all.LocalIP()}) // as ranks of this node will
	if err != nil {
		all.GiveUp(err)
		return nil, err
	}
	server := handshake.Serve(listener, n.Identity, func(conn net.Conn, _ handshake.Opening) {
		go func() {
			_, _ = io.Copy(conn, conn) // who has dialed says what does not come back
			_ = conn.Close()
		}()
	})
	defer func() { _ = server.Close() }() // nobody dials any more

	facts, err := launcher.Exchange(ctx, all, describeNode(n, listener.Addr().(*net.TCPAddr)))
	if err != nil {
		return nil, err
	}
	findings := append(compareNodes(facts, n.Rank), reachNodes(ctx, n, facts)...)
	if self := facts[n.Rank]; len(findings) == 0 {
		findings = append(findings, nodeFinding(n.Rank, doctor.OK, fmt.Sprintf("host %s, MTU %d, %s; it reaches all others", self.Host, self.MTU, self.Version), ""))
	}
	return launcher.Exchange(ctx, all, findings)
}

// describeNode returns what this node says of itself.
func describeNode(n launcher.Nodes, at *net.TCPAddr) nodeFacts {
	name, _ := os.Hostname() // it need not have one
	f := nodeFacts{Host: cmp.Or(name, "?"), Address: at.String(), Version: version(), Values: make(map[string]config.Setting)}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		addresses, _ := i.Addrs()
		if slices.ContainsFunc(addresses, func(a net.Addr) bool { n, ok := a.(*net.IPNet); return ok && n.IP.Equal(at.IP) }) {
			f.MTU = i.MTU
		}
	}

	cfg, _, err := loadConfig("")
	var settings *config.Settings

	if err == nil {
		ranks, from, isSet := cfg.WorldSize("")
		if !isSet {
			ranks, from = n.Count, "goccl doctor"
		}
		settings, err = cfg.Resolve(config.Request{Ranks: ranks, RanksFrom: from})
	}

	if err != nil {
		f.Invalid = err.Error()
		return f
	}
	for _, v := range settings.Values() {
		f.Values[v.Key] = v
	}
	return f
}

// compareNodes finds in what this node differs from node 0.
func compareNodes(facts []nodeFacts, rank int) (found []doctor.Finding) {
	self, first := &facts[rank], &facts[0]
	problem := func(do, says string, a ...any) {
		found = append(found, nodeFinding(rank, doctor.Problem, "host "+self.Host+fmt.Sprintf(says, a...), do))
	}
	if self.Version != first.Version {
		problem("install the same goccl on all nodes, and build the programs with it", " has %s, but node 0 %s", self.Version, first.Version)
	}
	if self.Invalid != "" {
		problem("correct it, or see `goccl explain`: dist fails to initialize with it", ": %s", self.Invalid)
		return found
	}

	const same = "give all nodes the same ccl.yaml and the same GOCCL_ variables"
	for _, key := range slices.Sorted(maps.Keys(self.Values)) {
		is, want := self.Values[key], first.Values[key]
		if first.Invalid == "" && is.Value != want.Value {
			problem(same, ": %s is %s (%s), but on node 0 %s (%s)", key, is.Value, is.Origin, cmp.Or(want.Value, "unset"), cmp.Or(want.Origin, "default"))
		}
	}
	return found
}

// reachNodes finds which others this node cannot send to, as much as a packet and more.
func reachNodes(ctx context.Context, n launcher.Nodes, facts []nodeFacts) []doctor.Finding {
	found := make([][]doctor.Finding, n.Count)
	var running sync.WaitGroup
	for other := range facts {
		if other != n.Rank {
			running.Go(func() { found[other] = reachNode(ctx, n, facts, other) })
		}
	}
	running.Wait()
	return slices.Concat(found...)
}

func reachNode(ctx context.Context, n launcher.Nodes, facts []nodeFacts, other int) []doctor.Finding {
	to := &facts[other]
	problem := func(does, why, do string) []doctor.Finding {
		says := fmt.Sprintf("host %s %s node %d, host %s, at %s%s", facts[n.Rank].Host, does, other, to.Host, to.Address, why)
		return []doctor.Finding{nodeFinding(n.Rank, doctor.Problem, says, do)}
	}
	conn, err := handshake.Dial(ctx, to.Address, nil, n.Identity, handshake.Opening{Purpose: purposeDoctor, From: uint32(n.Rank), To: uint32(other)})
	if err != nil {
		return problem("does not reach", ": "+err.Error(), "let firewalls and routes pass TCP between all nodes, to all ports from 1024 on: ranks listen at any")
	}
	defer func() { _ = conn.Close() }() // all was read

	sent, back := make([]byte, 256<<10), make([]byte, 256<<10)
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	go func() { _, _ = conn.Write(sent) }() // an error is seen below
	if _, err := io.ReadFull(conn, back); err != nil {
		return problem("sends short messages, and loses long ones, to", "", "give all interfaces between the nodes one MTU, as in ip link set dev eth0 mtu 1500")
	}
	return nil
}
