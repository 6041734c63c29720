package launchenv

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"
)

// hostname returns the name of this node, which need not be known to a resolver; tests replace it.
var hostname = os.Hostname

// IsLoopback reports whether a host is this one by its name alone.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}

// isLocal returns an error unless host is this node: its own name, an address of it, in brackets or
// not, the name of one, or the address that stands for all of a node.
func isLocal(host string) error {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inside, "]")
	}
	if name, err := hostname(); err == nil && strings.EqualFold(name, host) || net.ParseIP(host).IsUnspecified() {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return err
	}

	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}

	for _, f := range found {
		if f.IP.IsLoopback() {
			return nil
		}
		for _, o := range addresses {
			if n, ok := o.(*net.IPNet); ok && n.IP.Equal(f.IP) {
				return nil
			}
		}
	}
	return errors.New("it is another node's")
}
