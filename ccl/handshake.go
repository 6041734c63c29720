package ccl

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/internal/diagnose"
	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/transport"
)

// agree is the first call of every group. The ranks compare the digests of their settings; if
// these differ, they exchange the settings and find the first one that differs. It succeeds on all
// ranks or on none: a rank that fails the group after it has succeeded does not make others fail
// here.
func (e *engine) agree(ctx context.Context) error {
	digest := sha256.Sum256([]byte(e.selector.Agreement()))
	var fp transport.Fingerprint
	for i := range 4 {
		fp[i] = binary.LittleEndian.Uint64(digest[8*i:])
	}

	fp[4] = uint64(e.ep.PayloadLimit())
	e.seq++
	_, err := e.ep.Enter(&transport.Arrival{Ctx: ctx, Seq: e.seq, Fingerprint: fp, Hash: fingerprint.Hash(fp), Limit: e.entry.Limit})
	var mismatch *transport.MismatchError
	if errors.As(err, &mismatch) {
		err = e.differingSetting(ctx)
	}
	if err == nil {
		if e.ep.Conclude(true) {
			return nil
		}
		err = transport.ErrFailed // a rank that was here gave up waiting
	}
	f := e.ep.Failure()
	if !errors.Is(err, transport.ErrFailed) {
		f = e.ep.Fail(e.failures.failureOf(err, e.rank, e.seq))
	}
	if e.ep.Conclude(false) {
		return nil // all ranks had arrived meanwhile: the next call is the first to fail
	}
	e.ep.Withdraw()
	var differ *MismatchError
	if f == nil || f.By == e.rank || errors.As(err, &differ) {
		return err // this rank's own, or the one that all ranks found
	}
	return e.failures.cause(f)
}

// differingSetting returns the first setting in which ranks differ. All ranks call it and find the
// same one.
func (e *engine) differingSetting(ctx context.Context) error {
	texts, err := e.exchange(ctx, e.selector.Agreement())
	if err != nil {
		return err
	}
	m := disagreement(diagnose.Setting(texts))
	if m == nil {
		return &MismatchError{Field: "transport"}
	}

	origin := ""
	if s, ok := e.selector.(interface{ OriginOf(key string) string }); ok {
		origin = s.OriginOf(m.Field)
	}
	if texts, err = e.exchange(ctx, origin); err != nil {
		return m
	}

	for i, v := range m.Values {
		var from []string
		for _, r := range v.Ranks {
			from = append(from, texts[r])
		}
		slices.Sort(from)
		m.Values[i].Why = strings.Join(slices.Compact(from), ", ")
	}
	return m
}

// exchange returns the texts of all ranks.
func (e *engine) exchange(ctx context.Context, text string) ([]string, error) {
	e.seq++
	return diagnose.Exchange(e.ep, &transport.Arrival{
		Ctx: ctx, Seq: e.seq, Exposed: true, Send: []byte(text), Limit: e.entry.Limit, NoSpin: e.entry.NoSpin,
	})
}
