//go:build linux && (amd64 || arm64)

package abi

import (
	"errors"
	"math"
	"runtime"
	"sync"
)

// Request is a transfer. The zero value is ready for use; after a transfer has ended it can start
// another. The buffer belongs to the library until then.
type Request struct {
	lib     *library
	handle  uintptr
	status  [statusInts]int32
	flag    int32
	running bool // a transfer, which has not ended
	receive bool // it is a receive
	pins    runtime.Pinner
	args    [7]uintptr // of the next call

	// Of a receive that has ended: who sent the message, its tag, and its length in bytes.
	Source, Tag, Bytes int
	// Cancelled reports that the transfer ended by Cancel, without a message.
	Cancelled bool
}

// errRunning is the error of a Request that is used twice at a time.
var errRunning = errors.New("the request has a transfer already")

// errLong is the error of a message that MPI cannot count.
var errLong = errors.New("a message has at most 2 GiB less one byte")

// Isend starts to send b to a rank.
func (c *Comm) Isend(r *Request, b []byte, to, tag int) error {
	if err := c.checkRank(to); err != nil {
		return err
	}
	return c.startTransfer(r, false, b, int32(to), tag)
}

// Irecv starts to receive at most len(b) bytes from a rank. A longer message is an error of Test.
func (c *Comm) Irecv(r *Request, b []byte, from, tag int) error {
	if err := c.checkRank(from); err != nil {
		return err
	}
	return c.startTransfer(r, true, b, int32(from), tag)
}

// IrecvAny is Irecv from any rank.
func (c *Comm) IrecvAny(r *Request, b []byte, tag int) error {
	return c.startTransfer(r, true, b, c.lib.anySource, tag)
}

func (c *Comm) startTransfer(r *Request, receive bool, b []byte, peer int32, tag int) error {
	switch {
	case r.running:
		return errRunning
	case len(b) > math.MaxInt32:
		return errLong
	}

	l := c.lib
	var buffer uintptr
	r.pins.Pin(r)
	if len(b) > 0 {
		r.pins.Pin(&b[0])
		buffer = address(&b[0])
	}

	r.lib, r.receive, r.Cancelled = l, receive, false
	f := mpiIsend
	if receive {
		f = mpiIrecv
	}
	r.args = [7]uintptr{buffer, number(len(b)), l.byteType, number(int(peer)), number(tag), c.handle, address(&r.handle)}
	if err := l.call(f, r.args[:]...); err != nil {
		r.pins.Unpin()
		return err
	}
	r.running = true
	return nil
}

// Test reports whether the transfer has ended, with its error. It also makes the library progress
// on all of this process's transfers. Once it has returned true the buffer is the caller's. A
// Request without a transfer has ended.
func (r *Request) Test() (ended bool, err error) {
	if !r.running {
		return true, nil
	}
	r.args = [7]uintptr{address(&r.handle), address(&r.flag), address(&r.status[0])}
	code := r.lib.invoke(mpiTest, r.args[:3]...)
	if code == success && r.flag == 0 {
		return false, nil
	}
	if err = r.lib.check(mpiTest, code); err == nil { // with an error too, the library has ended the request
		err = r.readStatus()
	}
	r.running = false
	r.pins.Unpin()
	return true, err
}

// readStatus reads the status of a transfer that has ended.
func (r *Request) readStatus() error {
	l := r.lib
	r.args = [7]uintptr{address(&r.status[0]), address(&r.flag)}
	if err := l.call(mpiTestCancelled, r.args[:2]...); err != nil {
		return err
	}

	r.Cancelled = r.flag != 0
	if !r.receive || r.Cancelled {
		return nil
	}
	r.Source, r.Tag = int(r.status[l.source]), int(r.status[l.tag])
	r.args = [7]uintptr{address(&r.status[0]), l.byteType, address(&r.flag)}
	err := l.call(mpiGetCount, r.args[:3]...)
	r.Bytes = int(r.flag)
	return err
}

// Cancel asks the library to end a receive without a message. Test then returns true soon, with
// Cancelled, or with the message if that came first.
func (r *Request) Cancel() error {
	if !r.running {
		return nil
	}
	return r.lib.call(mpiCancel, address(&r.handle))
}

// Abandon gives up a transfer that may never end, such as one with a dead rank. The Request and the
// buffer belong to the library for as long as the process lives.
func (r *Request) Abandon() {
	if r.running {
		abandoned.Lock()
		abandoned.all = append(abandoned.all, r)
		abandoned.Unlock()
	}
}

// abandoned keeps the memory of transfers that the library may still write to.
var abandoned struct {
	sync.Mutex
	all []*Request
}
