package mesh

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/goccl/goccl/transport"
)

// message is what rank 0 and another rank send each other; one of the fields is set.
type message struct {
	Member  *member            `json:"member,omitempty"`  // to rank 0: who this rank is; first from rank 0: its process id
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
	Build     string `json:"build"`
	PID       int    `json:"pid"`
	Host      string `json:"host"`
	Address   string `json:"address"` // at which it listens
	Node      int    `json:"node"`
	LocalRank int    `json:"local_rank"`
	LocalSize int    `json:"local_size"`
}

// table is all members, by rank, and the session that they make.
type table struct {
	Session [16]byte  `json:"session"`
	Members []*member `json:"members"`
}

// member describes this rank.
func (j *joining) member() *member {
	return &member{j.Rank, j.Size, j.Job, j.Build, os.Getpid(), j.host, j.listener.Addr().String(), j.Node, j.LocalRank, j.LocalSize}
}

// sendTime bounds how long a message may take to leave this process.
const sendTime = 5 * time.Second

// maxMessage bounds a message. A table has about 200 bytes for each rank.
const maxMessage = 16 << 20

// send sends a message.
func send(conn net.Conn, m *message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	_, err = conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
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
