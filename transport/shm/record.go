package shm

import (
	"encoding/binary"
	"sync/atomic"
	"time"

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
const (
	recordBytes   = 1024
	recordRanks   = 64
	ranksOffset   = 24
	pidOffset     = 156
	textOffset    = 160
	missingOffset = recordBytes - 2 - 2*recordRanks
	textBytes     = missingOffset - textOffset - 2
)

// unmade is where a rank says, in the memory of the group whose ranks make another, that it
// could not make that, and why: a rank that cannot reach the new group's memory has no other
// place to say it. Each rank has a few, which it uses in turn, since it may make several
// groups at once.
type unmade struct {
	number atomic.Uint64 // of the group that could not be made,
	first  atomic.Uint64 // and its first member, plus 1; stored last
	_      [128 - 16]byte
	record [recordBytes]byte
}

const (
	unmadeSlots = 2
	unmadeBytes = 128 + recordBytes
)

// records implements lines.Causes.
type records struct {
	arena  arena
	layout layout
}

func (r records) Store(rank int, f *transport.Failure) {
	encodeFailure(r.record(rank), f)
}

func (r records) Load(rank int) *transport.Failure {
	f := decodeFailure(r.record(rank))
	f.By = rank // whose record it is, whatever that says
	return f
}

func (r records) record(rank int) []byte {
	return r.arena.bytes(r.layout.records+rank*recordBytes, recordBytes)
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
	n := copy(b[textOffset+2:missingOffset], f.Text)
	le.PutUint16(b[textOffset:], uint16(n))
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

// decodeFailure reads a record; lengths that cannot be are cut, since the memory
// is shared.
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
	n := min(int(le.Uint16(b[textOffset:])), textBytes)
	f.Text = string(b[textOffset+2 : textOffset+2+n])
	return f
}
