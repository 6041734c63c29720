package shm

import (
	"encoding/binary"
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
//	160  text   2, then up to 862
const (
	recordBytes = 1024
	recordRanks = 64
	pidOffset   = 156
	textOffset  = 160
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
	return decodeFailure(r.record(rank))
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
	ranks := f.Ranks[:min(len(f.Ranks), recordRanks)]
	le.PutUint16(b[24:], uint16(len(ranks)))
	for i, rank := range ranks {
		le.PutUint16(b[26+2*i:], uint16(rank))
	}
	n := copy(b[textOffset+2:recordBytes], f.Text)
	le.PutUint16(b[textOffset:], uint16(n))
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
	for i := range min(int(le.Uint16(b[24:])), recordRanks) {
		f.Ranks = append(f.Ranks, int(le.Uint16(b[26+2*i:])))
	}
	n := min(int(le.Uint16(b[textOffset:])), recordBytes-textOffset-2)
	f.Text = string(b[textOffset+2 : textOffset+2+n])
	return f
}
