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

// agree is the first call of every group. The ranks compare the digests of their settings; if
// these differ, they exchange the settings and find the first one that differs. It succeeds on all
// ranks or on none: a rank that fails the group after it has succeeded does not make others fail
// here.
func (c *Communicator) agree(ctx context.Context) error {
	digest := sha256.Sum256([]byte(c.selector.Agreement()))
	var fp transport.Fingerprint
	for i := range 4 {
		fp[i] = binary.LittleEndian.Uint64(digest[8*i:])
	}
	fp[4] = uint64(c.ep.PayloadLimit())
	c.seq++
	_, err := c.ep.Enter(&transport.Arrival{Ctx: ctx, Seq: c.seq, Fingerprint: fp, Hash: hash(fp)})
	var mismatch *transport.MismatchError
	if errors.As(err, &mismatch) {
		err = c.differingSetting(ctx)
	}
	if err == nil {
		if c.ep.Conclude(true) {
			return nil
		}
		err = transport.ErrFailed // a rank that was here gave up waiting
	}
	f := c.ep.Failure()
	if !errors.Is(err, transport.ErrFailed) {
		f = c.ep.Fail(c.failureOf(err, c.rank))
	}
	if c.ep.Conclude(false) {
		return nil // all ranks had arrived meanwhile: the next call is the first to fail
	}
	c.ep.Withdraw()
	var differ *MismatchError
	if f == nil || f.By == c.rank || errors.As(err, &differ) {
		return err // this rank's own, or the one that all ranks found
	}
	return c.cause(f)
}

// differingSetting returns the first setting in which ranks differ. All ranks call it and find the
// same one.
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

// exchange returns the texts of all ranks. It is the only exchange of data that does not need the
// ranks to agree on a call.
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

// longestText is longer than the text of any settings.
const longestText = 16 << 20

// exchangeStaged exchanges first the lengths, then the texts, piece by piece.
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
