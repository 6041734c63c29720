package ccl

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/goccl/goccl/transport"
)

// agree is the first call of every group: the ranks compare the digests of their
// settings, and if they differ they show each other the settings themselves and
// find the first that does. It succeeds on all ranks or on none: what a rank does once it
// has succeeded, and be it that it fails the group, does not make others fail here.
func (c *Communicator) agree(ctx context.Context) error {
	digest := sha256.Sum256([]byte(c.selector.Agreement()))
	var print transport.Fingerprint
	for i := range 4 {
		print[i] = binary.LittleEndian.Uint64(digest[8*i:])
	}
	print[4] = uint64(c.ep.PayloadLimit())
	c.seq++
	_, err := c.ep.Enter(&transport.Arrival{Ctx: ctx, Seq: c.seq, Fingerprint: print, Hash: hash(print)})
	var mismatch *transport.MismatchError
	if errors.As(err, &mismatch) {
		err = c.differingSetting(ctx)
	}
	if err == nil {
		if c.ep.Conclude(true) {
			return nil
		}
		err = transport.ErrFailed // by a rank that was here, and gave up waiting
	}
	f := c.ep.Failure()
	if !errors.Is(err, transport.ErrFailed) {
		f = c.ep.Fail(c.failureOf(err, c.rank))
	}
	if c.ep.Conclude(false) {
		return nil // all had come meanwhile: the next call is the first to fail
	}
	c.ep.Withdraw()
	var differ *MismatchError
	if f == nil || f.By == c.rank || errors.As(err, &differ) {
		return err // one's own, or what all ranks found
	}
	return c.cause(f)
}

// differingSetting finds the first setting in which ranks differ. All ranks call
// it, and all find the same.
func (c *Communicator) differingSetting(ctx context.Context) error {
	texts, err := c.exchange(ctx, []byte(c.selector.Agreement()))
	if err != nil {
		return err
	}
	values := make([]map[string]string, c.size)
	for r, text := range texts {
		values[r] = make(map[string]string)
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			values[r][key] = value
		}
	}
	first := &MismatchError{Field: "transport", Values: nil}
	for r := range values {
		for key := range values[r] {
			if first.Values != nil && key >= first.Field {
				continue
			}
			said := make([]string, c.size)
			for r := range said {
				said[r] = "unset"
				if v, ok := values[r][key]; ok {
					said[r] = v
				}
			}
			if m := disagreement(key, said); m != nil {
				first = m
			}
		}
	}
	return first
}

// exchange gives every rank the texts of all. It is the one thing that ranks do
// before they know that they agree on how to do things, or after they know that they
// do not.
func (c *Communicator) exchange(ctx context.Context, text []byte) ([][]byte, error) {
	c.seq++
	e := &transport.Arrival{Ctx: ctx, Seq: c.seq, Exposed: true, Send: text, Limit: c.entry.Limit, NoSpin: c.entry.NoSpin}
	if _, err := c.ep.Enter(e); err != nil {
		return nil, err
	}
	if c.regions != nil {
		c.memory = c.ep.Memory()
	}
	texts := make([][]byte, c.size)
	var err error
	if c.memory != nil {
		for r := range texts {
			send, _ := c.memory.Buffers(r)
			texts[r] = append(texts[r], send...)
		}
	} else {
		err = c.exchangeStaged(text, texts)
	}
	if err != nil {
		return nil, err
	}
	return texts, c.ep.Complete()
}

// longestText is longer than any text of settings.
const longestText = 16 << 20

// exchangeStaged shows the texts piece by piece, the lengths first.
func (c *Communicator) exchangeStaged(text []byte, texts [][]byte) error {
	s := c.ep.Staging()
	s.PutInput(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), 0, 0)
	if err := s.Flip(); err != nil {
		return err
	}
	lengths, longest := make([]int, c.size), 0
	for r := range lengths {
		lengths[r] = int(binary.LittleEndian.Uint64(s.Input(r, 8)))
		longest = max(longest, lengths[r])
		if lengths[r] < 0 || lengths[r] > longestText {
			return &ProtocolError{Peer: r, Text: fmt.Sprintf("it shows settings of %d bytes", lengths[r])}
		}
	}
	step := s.PieceBytes()
	for lo := 0; lo < longest; lo += step {
		s.PutInput(text[min(lo, len(text)):min(lo+step, len(text))], 0, 0)
		if err := s.Flip(); err != nil {
			return err
		}
		for r := range texts {
			n := min(lo+step, lengths[r]) - min(lo, lengths[r])
			texts[r] = append(texts[r], s.Input(r, n)...)
		}
	}
	return nil
}
