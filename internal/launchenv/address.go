package launchenv

import (
	"context"
	"errors"
	"net"
	"time"
)

// isLocal returns an error unless host is an address of this node, or the name of one.
func isLocal(host string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.IP.IsLoopback() {
			return nil
		}
		for _, o := range own {
			if n, ok := o.(*net.IPNet); ok && n.IP.Equal(f.IP) {
				return nil
			}
		}
	}
	return errors.New("it is another node's")
}
