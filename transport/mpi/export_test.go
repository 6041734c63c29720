//go:build linux && (amd64 || arm64)

package mpi

import (
	"testing"

	"github.com/goccl/goccl/transport"
)

// OnNodes connects ranks on nodes with these numbers by a net.
func OnNodes(t testing.TB, nodes []int) []transport.Endpoint { return joinAll(t, processesOn(nodes)) }

// NoticeDeath makes the process of a rank find another one dead.
func NoticeDeath(ep transport.Endpoint, dead int) {
	p := ep.(*endpoint).group.process
	p.deaths.markDead(dead)
	p.noticeDeaths()
}

// Stop makes the process of a rank handle no packet until goOn is called.
func Stop(ep transport.Endpoint) (goOn func()) {
	p := ep.(*endpoint).group.process
	p.polling.Lock()
	return p.polling.Unlock
}
