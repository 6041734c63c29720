package mesh

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// message is what rank 0 and another rank send each other; one of the fields is set.
type message struct {
	Member  *member            `json:"member,omitempty"`  // to rank 0: who this rank is
	Table   *table             `json:"table,omitempty"`   // from rank 0, when all have come
	Linked  bool               `json:"linked,omitempty"`  // to rank 0: this rank is connected with all
	Ready   bool               `json:"ready,omitempty"`   // from rank 0: all are
	Failure *transport.Failure `json:"failure,omitempty"` // this rank gives up, or all do
}

// member is a rank, as it describes itself.
type member struct {
	Rank      int    `json:"rank"`
	Size      int    `json:"size"`
	Job       string `json:"job"`
	PID       int    `json:"pid"`
	Host      string `json:"host"`
	Address   string `json:"address"` // at which it listens
	Memory    string `json:"memory"`
	LocalRank int    `json:"local_rank"`
	LocalSize int    `json:"local_size"`
	Facts     []Fact `json:"facts"`
}

// table is all members, by rank, and the session that they make.
type table struct {
	Session [16]byte  `json:"session"`
	Members []*member `json:"members"`
}

// member describes this rank.
func (j *joining) member() *member {
	m := &member{
		Rank: j.Rank, Size: j.Size, Job: j.Job, PID: os.Getpid(), Host: j.host, Memory: j.Memory,
		LocalRank: j.LocalRank, LocalSize: j.LocalSize, Facts: append([]Fact{{"number of lanes", fmt.Sprint(j.Lanes)}}, j.Facts...),
	}
	if j.listener != nil {
		m.Address = j.listener.Addr().String()
	}
	return m
}

// failureOf returns this rank's error as a failure, in the form in which it reaches all ranks.
func (j *joining) failureOf(err error) *transport.Failure {
	f := groupsync.JoinFailure(j.Rank, err)
	f.Cause = err
	return f
}

// errorOf returns a failure as the error of a rank. Its Reason is what else is known.
func errorOf(f *transport.Failure, rank int) (err error) {
	switch {
	case f == nil:
		return nil
	case f.Kind == transport.FailureAborted && f.By == rank:
		err = cmp.Or(f.Cause, errors.New(f.Text))
	default:
		err = groupsync.JoinError(f)
	}
	if f.Reason != "" {
		err = fmt.Errorf("%w; %s", err, f.Reason)
	}
	return err
}

// sendTime bounds how long a message may take to leave this process.
const sendTime = 5 * time.Second

// maxMessage bounds a message. A table has about 200 bytes for each rank.
const maxMessage = 16 << 20

// peer is a connection over which messages are sent.
type peer struct {
	net.Conn
	rank int // at the other end; -1 before it has said so
}

// send sends a message.
func (p *peer) send(m *message) error {
	if m.Failure != nil {
		f := *m.Failure
		f.Cause = nil // it does not leave the process
		m = &message{Failure: &f}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := p.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err = p.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// receive reads a message.
func receive(r io.Reader) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}

	text, err := io.ReadAll(io.LimitReader(r, int64(n))) // it takes no memory for bytes that do not come
	if err != nil {
		return nil, err
	}
	m := &message{}
	if err := json.Unmarshal(text, m); err != nil { // also of a part
		return nil, fmt.Errorf("a message that is none: %w", err)
	}
	return m, nil
}

// event is a message, or the end of a connection.
type event struct {
	*peer
	*message
	err error
}

// readAll passes on what comes over a connection, until it ends or nobody wants more.
func (p *peer) readAll(events chan<- event, ended <-chan struct{}) {
	for {
		m, err := receive(p)
		select {
		case events <- event{p, m, err}:
		case <-ended:
			return
		}
		if err != nil {
			return
		}
	}
}
