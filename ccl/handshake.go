package ccl

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/goccl/goccl/ccl/internal/diagnose"
	"github.com/goccl/goccl/ccl/internal/fingerprint"
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
	_, err := c.ep.Enter(&transport.Arrival{Ctx: ctx, Seq: c.seq, Fingerprint: fp, Hash: fingerprint.Hash(fp)})
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
	texts, err := c.exchange(ctx, c.selector.Agreement())
	if err != nil {
		return err
	}
	if m := disagreement(diagnose.Setting(texts)); m != nil {
		return m
	}
	return &MismatchError{Field: "transport"}
}

// exchange returns the texts of all ranks.
func (c *Communicator) exchange(ctx context.Context, text string) ([]string, error) {
	c.seq++
	return diagnose.Exchange(c.ep, &transport.Arrival{
		Ctx: ctx, Seq: c.seq, Exposed: true, Send: []byte(text), Limit: c.entry.Limit, NoSpin: c.entry.NoSpin,
	})
}
