package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/goccl/goccl/dist"
)

// connect connects this rank with all others by TCP, at the addresses of the interface that the
// variable names. It is collective.
func (v *vector) connect() error {
	const variable = "GLOO_SOCKET_IFNAME"
	i, err := net.InterfaceByName(os.Getenv(variable))
	if err != nil {
		return fmt.Errorf("MEMORY sockets: the interface of %s: %w", variable, err)
	}
	addresses, err := i.Addrs()
	if err != nil || len(addresses) == 0 {
		return errors.Join(err, fmt.Errorf("MEMORY sockets: %s has no address", i.Name))
	}

	at := net.JoinHostPort(addresses[0].(*net.IPNet).IP.String(), "0")
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()

	all, err := dist.AllGatherObject(listener.Addr().String())
	if err != nil {
		return err
	}
	for _, address := range all[:v.rank] {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		v.conns = append(v.conns, conn)
	}

	for range all[v.rank+1:] {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		v.conns = append(v.conns, conn)
	}
	return nil
}

// exchange moves as many bytes as an all-reduce does between each two ranks, in both directions at
// once, and does not reduce.
func (v *vector) exchange() error {
	share := max(2*len(v.bytes)/v.ranks, 1)
	errs := make([]error, 2*len(v.conns))
	var moving sync.WaitGroup
	for i, conn := range v.conns {
		moving.Go(func() { _, errs[2*i] = conn.Write(v.bytes[:share]) })
		moving.Go(func() { _, errs[2*i+1] = io.ReadFull(conn, v.arriving[i*share:][:share]) })
	}
	moving.Wait()
	return errors.Join(errs...)
}

// resizeBytes makes what exchange moves.
func (v *vector) resizeBytes(n int) {
	v.bytes = make([]byte, n)
	v.arriving = slices.Repeat([]byte{1}, max(2*n, v.ranks)) // mapped
}
