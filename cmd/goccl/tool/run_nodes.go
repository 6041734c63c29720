package tool

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/launcher"
)

// checkNodes checks the flags of a job of several nodes.
func (c *runCommand) checkNodes() error {
	const example = "as in goccl run --nnodes 2 --node-rank 0 --rdzv-endpoint node-a:29500 -n 4 ./train"
	switch _, port, err := net.SplitHostPort(c.Endpoint); {
	case c.Nodes < 1:
		return fmt.Errorf("--nnodes %d: want 1 or more", c.Nodes)
	case c.NodeRank < 0 || c.NodeRank >= c.Nodes:
		return fmt.Errorf("--node-rank %d: want the number of this node among --nnodes %d, from 0 to %d", c.NodeRank, c.Nodes, c.Nodes-1)
	case c.Nodes > 1 && c.Endpoint == "":
		return errors.New("--rdzv-endpoint is missing: give all nodes a host of node 0 and a port, " + example)
	case c.Nodes > 1 && (err != nil || port == "" || port == "0"):
		return fmt.Errorf("--rdzv-endpoint %s: want HOST:PORT, %s", c.Endpoint, example)
	}
	return nil
}

// nodes returns this node among those of the job. It warns if anybody can join them.
func (c *runCommand) nodes(stderr stderr) (launcher.Nodes, error) {
	if c.Nodes == 1 {
		return launcher.Nodes{}, nil
	}
	secret, err := launchenv.ReadSecret(os.Getenv)
	host, _, _ := net.SplitHostPort(c.Endpoint) // it was checked
	isLoopback := host == "localhost" || net.ParseIP(host).IsLoopback()
	switch {
	case err != nil || secret != "":
	case launchenv.IsOpen(os.Getenv):
		_, err = fmt.Fprintf(stderr, "goccl: warning: GOCCL_SECRET=none: whoever reaches %s may join the job\n", c.Endpoint)
	case !isLoopback:
		err = errors.New("--nnodes: without a secret, whoever reaches a node could join; " + launchenv.SecretRemedy)
	}
	return launcher.Nodes{Count: c.Nodes, Rank: c.NodeRank, Endpoint: c.Endpoint, Secret: secret}, err
}
