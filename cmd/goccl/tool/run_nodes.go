package tool

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/internal/handshake"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/launcher"
)

// nodeFlags say which of several nodes this one is. They are torchrun's.
type nodeFlags struct {
	Nodes    int      `name:"nnodes" aliases:"nodes" default:"1" placeholder:"N" help:"Number of nodes. Give this command on each, with the same --nnodes and --rdzv-endpoint."`
	NodeRank int      `name:"node-rank" aliases:"node_rank" placeholder:"I" help:"Number of this node, from 0. Node 0 has the lowest ranks and shows why the job failed; its exit status is that of all."`
	Endpoint string   `name:"rdzv-endpoint" aliases:"rdzv_endpoint" placeholder:"HOST:PORT" help:"Where the nodes connect: a name or address of node 0, and a port that is free there. They need one secret, in GOCCL_SECRET_FILE or GOCCL_SECRET."`
	Conf     joinConf `name:"rdzv-conf" aliases:"rdzv_conf" placeholder:"join_timeout=SECONDS" help:"How long launchers wait for each other; for goccl run 600 seconds, for goccl doctor 60, unless this says."`
}

// joinConf is the value of --rdzv-conf: how long launchers wait for each other.
type joinConf time.Duration

// Decode implements kong.MapperValue.
func (j *joinConf) Decode(ctx *kong.DecodeContext) error {
	var value string
	if err := ctx.Scan.PopValueInto("join_timeout=SECONDS", &value); err != nil {
		return err
	}
	key, number, _ := strings.Cut(value, "=")
	seconds, err := strconv.ParseUint(number, 10, 31)
	if key != "join_timeout" || err != nil || seconds == 0 {
		return fmt.Errorf("want join_timeout=SECONDS, but got %q", value)
	}
	*j = joinConf(time.Duration(seconds) * time.Second)
	return nil
}

// check checks the flags. usage is a command that is right.
func (f *nodeFlags) check(usage string) error {
	host, text, err := net.SplitHostPort(f.Endpoint)
	port, noPort := strconv.ParseUint(text, 10, 16)
	isEndpoint := errors.Join(err, noPort) == nil && port > 0 && host != "" && !net.ParseIP(host).IsUnspecified()

	switch {
	case f.Nodes < 1 || f.Nodes > launcher.MaxRanks:
		return fmt.Errorf("--nnodes %d: want 1 or more, up to %d", f.Nodes, launcher.MaxRanks)
	case f.NodeRank < 0 || f.NodeRank >= f.Nodes:
		return fmt.Errorf("--node-rank %d: want the number of this node among --nnodes %d, from 0 to %d", f.NodeRank, f.Nodes, f.Nodes-1)
	case f.Nodes > 1 && f.Endpoint == "":
		return errors.New("--rdzv-endpoint is missing: give all nodes a host of node 0 and a port, as in " + usage)
	case f.Nodes > 1 && !isEndpoint:
		return fmt.Errorf("--rdzv-endpoint %s: want HOST:PORT, as in %s", f.Endpoint, usage)
	}
	return nil
}

// nodes returns this node among the others. It warns if anybody can join them.
func (f *nodeFlags) nodes(log *runLog) (launcher.Nodes, error) {
	n := launcher.Nodes{Count: f.Nodes, Rank: f.NodeRank, Endpoint: f.Endpoint, Timeout: time.Duration(f.Conf)}
	if n.Count == 1 {
		return n, nil
	}
	n.Note = log.note
	var err error
	if n.Wrap, err = handshake.WrapBy(os.Getenv(launchenv.CertificatesVariable)); err != nil {
		return n, err
	}

	switch n.Secret, err = launchenv.ReadSecret(os.Getenv); {
	case err != nil || n.Secret != "":
	case launchenv.IsOpen(os.Getenv):
		log.warn(launcher.Warning{Rank: -1, Text: fmt.Sprintf("GOCCL_SECRET=none: whoever reaches %s may join the job", n.Endpoint)})
	case !n.IsLoopback():
		err = errors.New("--nnodes: without a secret, whoever reaches a node could join; " + launchenv.SecretRemedy)
	}
	return n, err
}
