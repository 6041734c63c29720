package flight

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/atomicfile"
	"github.com/goccl/goccl/internal/userfile"
)

// Version is the version of a Document.
const Version = 1

// Document is the records of ranks as a file.
type Document struct {
	Version int       `json:"version"`
	Job     string    `json:"job"`
	Size    int       `json:"size"`   // ranks of the job
	Writer  string    `json:"writer"` // such as "rank 2"
	Written time.Time `json:"written"`
	Ranks   []Rank    `json:"ranks"` // those that were readable
}

// Rank is what one rank has recorded.
type Rank struct {
	Rank     int          `json:"rank"`
	PID      int          `json:"pid"`
	Hidden   int          `json:"hidden,omitzero"` // groups that the rank's own file alone has
	Groups   []GroupCalls `json:"groups"`
	Messages []Message    `json:"messages"` // of all groups
	Marks    []Mark       `json:"marks,omitzero"`

	// Counters are those of groups that the rank has left, whose memory other groups have taken.
	Counters []Counter `json:"counters,omitzero"`
}

// GroupCalls is the calls of one rank on one group, the oldest first.
type GroupCalls struct {
	ID    string `json:"id"`   // the same on all ranks of the group
	Name  string `json:"name"` // "" for the first group
	Rank  int    `json:"rank"` // in the group
	Size  int    `json:"size"`
	Left  bool   `json:"left,omitzero"` // the rank has closed the group
	Calls []Call `json:"calls"`

	Counters []Counter `json:"counters,omitzero"` // of all calls, by collective, if they were counted
}

// Call is one collective call. One that is StateStarting has a number only. One that is
// StateRejected has no operation and no root, and if Communicator.Reject made it a number only.
type Call struct {
	Number     uint64    `json:"number"`
	Collective string    `json:"collective,omitzero"`
	Type       string    `json:"type,omitzero"`
	Op         string    `json:"op,omitzero"`
	Root       *int      `json:"root,omitzero"`
	Count      int       `json:"count"` // of elements
	Algorithm  string    `json:"algorithm,omitzero"`
	Label      string    `json:"label,omitzero"`
	State      State     `json:"state"`
	Begun      time.Time `json:"begun,omitzero"` // if times were taken
	Ended      time.Time `json:"ended,omitzero"`
}

// Message is one send or receive. Its number counts the rank's messages.
type Message struct {
	Number uint64    `json:"number"`
	Kind   string    `json:"kind,omitzero"`  // "send" or "recv"
	Group  string    `json:"group,omitzero"` // id; "" if it is not known
	Peer   int       `json:"peer"`           // in the group; -1: any rank
	Tag    int       `json:"tag"`
	Type   string    `json:"type,omitzero"`
	Count  int       `json:"count"`
	Label  string    `json:"label,omitzero"`
	State  State     `json:"state"`
	Begun  time.Time `json:"begun,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
}

// Mark says what the program does from a time on, until its next mark. Its number counts the
// rank's marks.
type Mark struct {
	Number uint64    `json:"number"`
	Group  string    `json:"group,omitzero"` // id, of the group whose steps are counted; "" if it is not known
	Step   int       `json:"step"`
	Label  string    `json:"label"`
	At     time.Time `json:"at"`
}

// State is how far a call or a message has come.
type State string

// States.
const (
	StateStarting State = "starting" // its record is not complete
	StateBegun    State = "begun"    // it waits for other ranks to enter it
	StateInside   State = "inside"   // all ranks have entered it
	StateDone     State = "done"
	StateFailed   State = "failed"
	StateRejected State = "rejected" // this rank has rejected its arguments
)

// progress orders states: a later one replaces an earlier one.
var progress = map[State]int{StateStarting: 0, StateBegun: 1, StateInside: 2, StateRejected: 3, StateFailed: 4, StateDone: 5}

// HasEnded reports whether the call or message is over.
func (s State) HasEnded() bool { return progress[s] >= progress[StateRejected] }

// After reports whether s comes after t.
func (s State) After(t State) bool { return progress[s] > progress[t] }

// String returns the call as text, such as "call 5, all_reduce of 1024 float32 by direct (done)".
func (c Call) String() string {
	if c.Collective == "" {
		return fmt.Sprintf("call %d (%s)", c.Number, c.State)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "call %d, %s", c.Number, c.Collective)
	if c.Type != "" {
		fmt.Fprintf(&b, " of %d %s", c.Count, c.Type)
	}
	if c.Op != "" {
		fmt.Fprintf(&b, ", %s", c.Op)
	}

	if c.Root != nil {
		fmt.Fprintf(&b, ", root %d", *c.Root)
	}
	if c.Algorithm != "" {
		fmt.Fprintf(&b, " by %s", c.Algorithm)
	}
	if c.Label != "" {
		fmt.Fprintf(&b, " %q", c.Label)
	}
	fmt.Fprintf(&b, " (%s)", c.State)
	return b.String()
}

// String returns the message as text, such as "message 3, send of 8 int64 to rank 1, tag 7
// (begun)".
func (m Message) String() string {
	what := ""
	if m.Kind != "" {
		what = ", " + m.What()
	}
	return fmt.Sprintf("message %d%s (%s)", m.Number, what, m.State)
}

// What returns what the message is, such as "send of 8 int64 to rank 1, tag 7".
func (m Message) What() string {
	way, peer := "from", "any rank"
	if m.Kind == "send" {
		way = "to"
	}

	if m.Peer >= 0 {
		peer = fmt.Sprint("rank ", m.Peer)
	}
	label := ""
	if m.Label != "" {
		label = fmt.Sprintf(" %q", m.Label)
	}
	return fmt.Sprintf("%s of %d %s %s %s, tag %d%s", m.Kind, m.Count, m.Type, way, peer, m.Tag, label)
}

// filePrefix and fileSuffix are those of the names of documents.
const (
	filePrefix = "flight-"
	fileSuffix = ".json"
)

// Write writes the document to a new file of its job and writer in a directory, which it makes if
// it does not exist. It replaces an earlier file, at once.
func (d *Document) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("flight recorder: %w", err)
	}
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("flight recorder: %w", err)
	}

	name := filePrefix + d.Job + "-" + strings.ReplaceAll(d.Writer, " ", "-") + fileSuffix
	err = atomicfile.Replace(filepath.Join(dir, name), false, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("flight recorder: %w", err)
	}
	return nil
}

// Parse decodes a document and checks it.
func Parse(text []byte) (*Document, error) {
	d := new(Document)
	if err := json.Unmarshal(text, d); err != nil {
		if at, ok := errors.AsType[*json.SyntaxError](err); ok && at.Offset == int64(len(text)) {
			return nil, errors.New("it is empty, or its end is missing: its writer was killed, or the disk was full")
		}
		return nil, fmt.Errorf("it is no flight record: %w", err)
	}
	if d.Version != Version {
		return nil, fmt.Errorf("its version is %d, and this program reads version %d: use the goccl that wrote it", d.Version, Version)
	}

	for _, r := range d.Ranks {
		if r.Rank < 0 {
			return nil, fmt.Errorf("it has a rank %d", r.Rank)
		}

		for _, g := range r.Groups {
			if g.Rank < 0 || g.Size < 1 || g.Rank >= g.Size {
				return nil, fmt.Errorf("rank %d is rank %d of %d in the group %q", r.Rank, g.Rank, g.Size, g.Name)
			}
			for _, c := range g.Calls {
				if _, known := progress[c.State]; !known {
					return nil, fmt.Errorf("rank %d: call %d has the state %q", r.Rank, c.Number, c.State)
				}
			}
		}

		for _, m := range r.Messages {
			if _, known := progress[m.State]; !known {
				return nil, fmt.Errorf("rank %d: message %d has the state %q", r.Rank, m.Number, m.State)
			}
		}
	}
	return d, nil
}

// Load reads the documents in a directory, in the order of their names, and returns why it has not
// read others: one that is torn, or not a regular file of this user. It fails if there is none that
// it can read.
func Load(dir string) (all []*Document, unread []error, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}

	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filePrefix) || !strings.HasSuffix(e.Name(), fileSuffix) {
			continue
		}
		d, err := load(filepath.Join(dir, e.Name()))
		if err != nil {
			unread = append(unread, err)
			continue
		}
		all = append(all, d)
	}

	switch {
	case all != nil:
		return all, unread, nil
	case unread != nil:
		return nil, unread, errors.Join(unread...)
	}
	return nil, nil, fmt.Errorf("%s has no flight records: no file %s*%s", dir, filePrefix, fileSuffix)
}

func load(name string) (*Document, error) {
	text, err := userfile.Read(name)
	if err != nil {
		return nil, err
	}
	d, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	return d, nil
}
