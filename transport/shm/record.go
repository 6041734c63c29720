package shm

import (
	"cmp"
	"encoding/binary"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// A record is a failure without pointers:
//
//	  0  kind   4
//	  4  by     4
//	  8  seq    8
//	 16  after  8
//	 24  ranks  2, then 64 * 2
//	156  pid    4
//	160  text   2, then up to 732
//	894  missing 2, then 64 * 2
//	1024 reason  2, then up to 240
const (
	recordBytes   = 1280
	recordRanks   = 64
	ranksOffset   = 24
	pidOffset     = 156
	textOffset    = 160
	missingOffset = reasonOffset - 2 - 2*recordRanks
	reasonOffset  = 1024
	textBytes     = missingOffset - textOffset - 2
)

const _ = uint(textBytes - transport.TextBytes) // a record must hold the longest text

// unmade reports, in the parent group's arena, that a rank could not make a new group, and why.
// A rank that cannot open the new group's memory can report it nowhere else.
//
// The report stands for all groups that follow in the same call, so that its size does not depend
// on their number. Each rank has unmadeSlots reports and uses them in rotation, one for a call: a
// rank makes the groups of one call before it makes the next, unless it calls from several
// goroutines.
type unmade struct {
	number  interleave.Uint64 // of the first group of its call that could not be made
	written interleave.Uint64 // 1 if the report is whole; stored last
	_       [128 - 16]byte
	record  [recordBytes]byte
}

const (
	unmadeSlots = 2
	unmadeBytes = 128 + recordBytes
)

// records implements groupsync.Causes.
type records struct {
	arena  arena
	layout layout
}

func (r records) Store(rank int, f *transport.Failure) {
	encodeFailure(r.record(rank), f)
}

func (r records) Load(rank int) *transport.Failure {
	f := decodeFailure(r.record(rank))
	if f.By >= r.layout.ranks { // the record was overwritten
		f.By = rank
	}
	return f
}

func (r records) record(rank int) []byte {
	return r.arena.bytes(r.layout.records+rank*recordBytes, recordBytes)
}

// A reason is why a rank rejected a call:
//
//	 0  seq     8  number of the call; 0: no reason, or it is being written
//	 8  length  8  length of the text
//	16  text  240
//
// Its rank may replace it while other ranks read it, so it consists of atomic words.
type reason struct {
	seq, length interleave.Uint64
	text        [transport.ReasonBytes / 8]interleave.Uint64
}

const reasonBytes = 256

// reason returns one of a rank's reasons: 0 for the first of its latest run of rejected calls, 1
// for the latest rejected call.
func (r records) reason(rank, i int) *reason {
	return at[reason](r.arena, r.layout.reasons+(2*rank+i)*reasonBytes)
}

func (r records) StoreReason(rank int, seq uint64, first bool, why string) {
	if first {
		r.reason(rank, 0).store(seq, why)
		return
	}
	r.reason(rank, 1).store(seq, why)
}

func (r records) LoadReason(rank int, seq uint64) string {
	return cmp.Or(r.reason(rank, 0).load(seq), r.reason(rank, 1).load(seq))
}

func (r *reason) store(seq uint64, why string) {
	var b [transport.ReasonBytes]byte
	n := copy(b[:], why)
	r.seq.Store(0)
	r.length.Store(uint64(n))
	for i := range (n + 7) / 8 {
		r.text[i].Store(binary.LittleEndian.Uint64(b[8*i:]))
	}
	r.seq.Store(seq)
}

// load returns the reason for call seq, or "" if it belongs to another call or changes meanwhile.
func (r *reason) load(seq uint64) string {
	if r.seq.Load() != seq {
		return ""
	}
	var b [transport.ReasonBytes]byte
	n := min(r.length.Load(), uint64(len(b)))
	for i := range (n + 7) / 8 {
		binary.LittleEndian.PutUint64(b[8*i:], r.text[i].Load())
	}
	if r.seq.Load() != seq {
		return ""
	}
	return string(b[:n])
}

func encodeFailure(b []byte, f *transport.Failure) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], uint32(f.Kind))
	le.PutUint32(b[4:], uint32(f.By))
	le.PutUint64(b[8:], f.Seq)
	le.PutUint64(b[16:], uint64(f.After))
	le.PutUint32(b[pidOffset:], uint32(f.PID))
	encodeRanks(b[ranksOffset:], f.Ranks)
	encodeRanks(b[missingOffset:], f.Missing)
	encodeText(b[textOffset:missingOffset], f.Text)
	encodeText(b[reasonOffset:reasonOffset+2+transport.ReasonBytes], f.Reason)
}

func encodeText(b []byte, text string) {
	binary.LittleEndian.PutUint16(b, uint16(copyText(b[2:], text)))
}

// copyText copies text, or its beginning and a mark if it is longer than b.
func copyText(b []byte, text string) int {
	const more = "..."
	if len(text) <= len(b) {
		return copy(b, text)
	}
	n := copy(b, strings.ToValidUTF8(text[:len(b)-len(more)], ""))
	return n + copy(b[n:], more)
}

func decodeText(b []byte) string {
	return string(b[2:][:min(int(binary.LittleEndian.Uint16(b)), len(b)-2)])
}

func encodeRanks(b []byte, ranks []int) {
	ranks = ranks[:min(len(ranks), recordRanks)]
	binary.LittleEndian.PutUint16(b, uint16(len(ranks)))
	for i, rank := range ranks {
		binary.LittleEndian.PutUint16(b[2+2*i:], uint16(rank))
	}
}

func decodeRanks(b []byte) (ranks []int) {
	for i := range min(int(binary.LittleEndian.Uint16(b)), recordRanks) {
		ranks = append(ranks, int(binary.LittleEndian.Uint16(b[2+2*i:])))
	}
	return ranks
}

// decodeFailure decodes a record. Other ranks may have overwritten it, so it cuts invalid
// lengths.
func decodeFailure(b []byte) *transport.Failure {
	le := binary.LittleEndian
	f := &transport.Failure{
		Kind:  transport.FailureKind(le.Uint32(b[0:])),
		By:    int(le.Uint32(b[4:])),
		Seq:   le.Uint64(b[8:]),
		After: time.Duration(le.Uint64(b[16:])),
		PID:   int(le.Uint32(b[pidOffset:])),
	}
	f.Ranks, f.Missing = decodeRanks(b[ranksOffset:]), decodeRanks(b[missingOffset:])
	f.Text = decodeText(b[textOffset:missingOffset])
	f.Reason = decodeText(b[reasonOffset : reasonOffset+2+transport.ReasonBytes])
	return f
}
