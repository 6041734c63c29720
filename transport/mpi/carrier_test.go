//go:build linux && (amd64 || arm64)

package mpi

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"testing"
	"time"

	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// A carrier is a process that a launcher has started, one rank of MPI. It carries the packets of endpoints in another process, the
// test, to which a socket connects it: what the test writes it sends through the library, and what arrives there it writes to the
// test. It ends with the test.
//
// Both write frames:
//
//	0  length   4   of the packet
//	4  process  4   to which it goes, or from which it comes
//	8  packet

// socketVariable names the socket of the test. A process that has it is a carrier.
const socketVariable = "TEST_GOCCL_SOCKET"

const frameHead = 8

func TestMain(m *testing.M) {
	socket := os.Getenv(socketVariable)
	if socket == "" {
		os.Exit(m.Run())
	}
	if err := carry(socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("passed")
}

// carry carries packets until the test has nothing more to write.
func carry(socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	world, err := abi.Init(ctx, os.Getenv(libraryVariable), os.Getenv)
	if err != nil {
		return err
	}
	wire, err := newWire(world)
	if err != nil {
		return err
	}
	test, err := stdnet.Dial("unix", socket)
	if err != nil {
		return err
	}
	if _, err := test.Write(binary.LittleEndian.AppendUint32(nil, uint32(world.Rank))); err != nil {
		return err
	}
	p := newProcess(wire)
	ended := make(chan error, 1)
	go func() { ended <- sendFrames(test, wire) }()
	if err := errors.Join(deliverFrames(p, wire, test, ended), test.Close()); err != nil {
		return err
	}
	end, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	p.SayGoodbye(end) // then nothing is on its way
	return errors.Join(wire.close(end), abi.Finalize(end))
}

// sendFrames sends what the test writes, until its end.
func sendFrames(test io.Reader, w *mpiWire) error {
	in := bufio.NewReader(test)
	for {
		to, n, err := readHead(in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		b := w.Packet(n, 0)
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		if err := w.Send(to, b, packet.Body{}); err != nil {
			return err
		}
	}
}

// frames writes packets that arrive to the test.
type frames struct {
	*packet.Process
	out *bufio.Writer
}

func (f frames) Deliver(from int, b []byte, _ bool) (isKept bool) {
	if binary.LittleEndian.Uint16(b[netOffset:]) == 0 { // of a carrier that has ended before this one
		return f.Process.Deliver(from, b, false)
	}
	_, _ = f.out.Write(appendFrame(nil, from, b)) // Flush returns the error
	return false
}

// deliverFrames writes packets that arrive to the test, until that has ended.
func deliverFrames(p *packet.Process, w *mpiWire, test io.Writer, ended <-chan error) error {
	out := bufio.NewWriter(test)
	deliver := frames{p, out}
	for idle := 0; ; idle++ {
		select {
		case err := <-ended:
			return err
		default:
		}
		switch found, err := w.Poll(deliver); {
		case err != nil:
			return err
		case found:
			idle = 0
			_ = out.Flush() // it fails if the test is gone, which ends this
		case idle > 1000:
			time.Sleep(time.Millisecond)
		default:
			time.Sleep(napTime)
		}
	}
}

func readHead(in io.Reader) (process, n int, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, 0, err
	}
	return int(binary.LittleEndian.Uint32(head[4:])), int(binary.LittleEndian.Uint32(head[:])), nil
}

func appendFrame(b []byte, process int, packet []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(packet)))
	b = binary.LittleEndian.AppendUint32(b, uint32(process))
	return append(b, packet...)
}
