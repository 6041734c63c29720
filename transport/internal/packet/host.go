package packet

import (
	"crypto/rand"
	"fmt"
	"os"

	"github.com/goccl/goccl/internal/text"
)

// host is where a process is.
type host struct {
	boot, pids string // process ids count in one boot of one machine, in one namespace
	memory     string // the directory of shared memory
	pid        int
	token      string // random; that of a node's first process names the node's memory
	name       string // of the machine, for errors
}

// sharesMemory reports whether processes on h and o can share memory.
func (h host) sharesMemory(o host) bool { return h.sharesPIDs(o) && h.memory == o.memory }

// sharesPIDs reports whether processes on h and o see each other's process ids.
func (h host) sharesPIDs(o host) bool { return h.boot == o.boot && h.pids == o.pids }

// describeHost returns the description of this process, for the others. Those of different nodes
// share no memory.
func describeHost(node int) string {
	boot, pids, memory := machine()
	name, _ := os.Hostname() // it need not have one
	return fmt.Sprintf("%s %s %s:%d %d %s %q", boot, pids, memory, node, os.Getpid(), rand.Text(), text.Host(name))
}

// parseHost parses a description that describeHost has made.
func parseHost(description string) (h host, err error) {
	if _, err := fmt.Sscanf(description, "%s %s %s %d %s %q", &h.boot, &h.pids, &h.memory, &h.pid, &h.token, &h.name); err != nil {
		return host{}, fmt.Errorf("%.200q: %w", description, err)
	}
	return h, nil
}
