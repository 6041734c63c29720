package shm

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

func TestFailureSurvivesItsRecord(t *testing.T) {
	for _, f := range []transport.Failure{
		{Kind: transport.FailureAborted, By: 3, Seq: 1 << 40, Text: "no more data", Reason: "recv has 3 elements, want 4"},
		{Kind: transport.FailureTimeout, By: 0, Seq: 7, Ranks: []int{1, 2, 65535}, After: time.Minute},
		{Kind: transport.FailureRejected, By: 1, Seq: 9, Ranks: []int{0, 3}, Missing: []int{2, 5}},
		{Kind: transport.FailurePeerLost, By: 65535, Ranks: []int{0}, PID: 1 << 22},
	} {
		b := make([]byte, recordBytes)
		encodeFailure(b, &f)
		got := decodeFailure(b)
		if got.Kind != f.Kind || got.By != f.By || got.Seq != f.Seq || !slices.Equal(got.Ranks, f.Ranks) || !slices.Equal(got.Missing, f.Missing) ||
			got.PID != f.PID || got.After != f.After || got.Text != f.Text || got.Reason != f.Reason || got.Cause != nil {
			t.Errorf("got %+v, want %+v", got, f)
		}
	}
}

// Text and ranks that do not fit are cut. Nothing is written beyond the record.
func TestRecordIsBounded(t *testing.T) {
	const guard = 0xa5
	b := bytes.Repeat([]byte{guard}, recordBytes+16)
	many := make([]int, 1000)
	for i := range many {
		many[i] = i
	}
	encodeFailure(b[:recordBytes:recordBytes], &transport.Failure{Kind: transport.FailureRejected, Ranks: many, Missing: many, Text: strings.Repeat("x", 5000)})
	if rest := b[recordBytes:]; !bytes.Equal(rest, bytes.Repeat([]byte{guard}, len(rest))) {
		t.Error("the record has written beyond its end")
	}
	got := decodeFailure(b[:recordBytes])
	if !slices.Equal(got.Ranks, many[:recordRanks]) || !slices.Equal(got.Missing, many[:recordRanks]) || len(got.Text) != textBytes {
		t.Errorf("got %d ranks and %d bytes of text", len(got.Ranks), len(got.Text))
	}
}

// A record may contain any bytes, since other processes can write it.
func FuzzDecodeFailure(f *testing.F) {
	good := make([]byte, recordBytes)
	encodeFailure(good, &transport.Failure{Kind: transport.FailureTimeout, Ranks: []int{1}, Text: "late"})
	f.Add(good)
	f.Add(bytes.Repeat([]byte{0xff}, recordBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < recordBytes {
			b = append(b, make([]byte, recordBytes-len(b))...)
		}
		got := decodeFailure(b[:recordBytes])
		if len(got.Ranks) > recordRanks || len(got.Text) > recordBytes {
			t.Errorf("%d ranks, %d bytes of text", len(got.Ranks), len(got.Text))
		}
	})
}

// load returns a reason as it was stored, or none: not while it is replaced, and not the reason for
// another call. Invalid lengths are cut.
func TestReasonIsWholeOrNotThere(t *testing.T) {
	var r reason
	check := func(seq uint64, want string) {
		t.Helper()
		if got := r.load(seq); got != want {
			t.Errorf("the reason for call %d is %q, want %q", seq, got, want)
		}
	}
	check(1, "")
	long := strings.Repeat("0123456789abcdef", 30)
	for seq, why := range []string{1: "", 2: "a", 3: "12345678", 4: "123456789", 5: long[:transport.ReasonBytes]} {
		if seq > 0 {
			r.store(uint64(seq), why)
			check(uint64(seq), why)
			check(uint64(seq)-1, "")
		}
	}
	r.store(6, long)
	check(6, long[:transport.ReasonBytes])
	r.length.Store(1 << 63)
	check(6, long[:transport.ReasonBytes])
	r.seq.Store(0) // like in the middle of another store
	check(6, "")

	var writer sync.WaitGroup
	const calls = 20_000
	text := func(seq int) string { return strings.Repeat(string(rune('a'+seq%26)), 1+seq%transport.ReasonBytes) }
	writer.Go(func() {
		for seq := 1; seq <= calls; seq++ {
			r.store(uint64(seq), text(seq))
		}
	})
	for last := uint64(0); last < calls; {
		if last = r.seq.Load(); last > 0 {
			if got := r.load(last); got != "" && got != text(int(last)) {
				t.Fatalf("the reason for call %d is %q, want %q", last, got, text(int(last)))
			}
		}
	}
	writer.Wait()
}
