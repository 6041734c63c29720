package shm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/goccl/goccl/internal/interleave"
)

// A segment is a file that starts with a header. Ranks check the header before they map the
// file, and write their process ids into it:
//
//	  0  magic    8       "GOCCLSHM"
//	  8  order    4       byteOrder, in the byte order of the machine that wrote it
//	 12  version  4       headerVersion; it changes with the layout or meaning of any word
//	 16  page     8       size of a page of memory, in bytes
//	 24  ranks    8       R
//	 32  arena    8       size of the arena, in bytes
//	 40  name     2       length of the job's name, then up to 128 bytes of the name
//	176  secret   32      digest of the job's secret; zero: it has none
//	208  id       16      random, unique to this segment
//	224  made     8       when it was made, in nanoseconds since the machine started
//	256  verdict  4       whether all ranks have joined; written once
//	260  failed   4       1: failure holds the reason why not all ranks have joined
//	384  failure  1280    that reason; its writer holds the lock on byte failureLock; see record.go
//	1664 seats    R * 16  the ranks' processes
//	     arena            at the next multiple of a page
//
// The fields up to made are written before the file has a name, and never change. Their numbers
// are little-endian, except for order.
const (
	headBytes     = 256
	verdictOffset = 256
	failedOffset  = 260
	failureOffset = 384
	seatsOffset   = failureOffset + recordBytes
	seatBytes     = 16
	maxRanks      = 1 << 16
	maxName       = 128
	magic         = "GOCCLSHM"
	byteOrder     = 0x01020304
	headerVersion = 9
	secretOffset  = 176
	idOffset      = 208
	madeOffset    = 224
)

// A seat describes a rank's process. Only that rank writes it.
//
//	 0  start  8  when the process started, in clock ticks since the machine started
//	 8  pid    4  its process id, in its own pid namespace
//	12  state  4  stored last
type seat struct {
	start uint64
	pid   int32
	state interleave.Uint32
}

// occupant is the content of a seat.
type occupant struct {
	start uint64
	pid   int
	state uint32
}

func decodeSeat(b []byte) occupant {
	ne := binary.NativeEndian
	return occupant{start: ne.Uint64(b), pid: int(int32(ne.Uint32(b[8:]))), state: ne.Uint32(b[12:])}
}

// States of a seat.
const (
	absent   = iota // the rank has not attached
	attached        // the rank has attached, and holds its lock for as long as it lives
	done            // regions only: the rank no longer uses the region
)

// Values of the verdict. The first rank to store one decides for all ranks: a rank that gives
// up just after rank 0 has stored ready has joined as well.
const (
	gathering = iota
	ready     // all ranks have attached
	abandoned // a rank has given up, or a process has come that cannot be a rank
)

// versionError reports that a file is a segment of another version of this package.
type versionError uint32

func (v versionError) Error() string {
	return fmt.Sprintf("its layout has version %d, this program's version %d: all ranks, and the tool goccl, need the same goccl", uint32(v), headerVersion)
}

// header holds the values that all ranks of a job agree on.
type header struct {
	name               string // of the job, without its slash
	ranks, arena, page int
	secret             [32]byte
	id                 [16]byte // chosen by rank 0
	made               uint64   // when it was made, by sinceBoot
}

// newHeader returns the header of a job's segment with an arena of size bytes.
func newHeader(j Job, size int) (header, error) {
	h := header{name: strings.TrimPrefix(j.Name, "/"), ranks: j.Size, arena: size, page: os.Getpagesize()}
	if j.Secret != "" {
		h.secret = sha256.Sum256([]byte(j.Secret))
	}
	if j.Rank < 0 || j.Rank >= j.Size {
		return h, fmt.Errorf("rank %d does not exist in a job of %d ranks", j.Rank, j.Size)
	}
	return h, h.validate()
}

// isNameByte reports whether the name of a job may have the character c.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

func (h header) validate() error {
	if h.ranks < 1 || h.ranks > maxRanks {
		return fmt.Errorf("%d ranks, want 1 to %d", h.ranks, maxRanks)
	}
	if h.name == "" || len(h.name) > maxName {
		return fmt.Errorf("the job's name %.150q has %d characters, want 1 to %d", h.name, len(h.name), maxName)
	}

	for _, c := range []byte(h.name) {
		if !isNameByte(c) {
			return fmt.Errorf("the job's name %q has the character %q, want letters, digits, '.', '_' and '-'", h.name, c)
		}
	}
	if h.page < 1<<12 || h.page > 1<<24 || h.page&(h.page-1) != 0 {
		return fmt.Errorf("pages of %d bytes", h.page)
	}
	if h.arena < 1 || h.arena > math.MaxInt-h.page-h.offset() {
		return fmt.Errorf("an arena of %d bytes", h.arena)
	}
	return nil
}

// subJob returns the Job of a segment that belongs to this one: a group's or a region's. Its
// secret is this segment's id, so that segments of two jobs of one name are never mixed up.
func (h header) subJob(rank, size int, format string, args ...any) Job {
	name := h.name + fmt.Sprintf(format, args...)
	if len(name) > maxName {
		hash := sha256.Sum256([]byte(name))
		name = name[:maxName-17] + "-" + hex.EncodeToString(hash[:8])
	}
	return Job{Name: name, Rank: rank, Size: size, Secret: hex.EncodeToString(h.id[:])}
}

// offset returns the offset of the arena in the file.
func (h header) offset() int {
	return (seatsOffset + h.ranks*seatBytes + h.page - 1) &^ (h.page - 1)
}

// total returns the length of the file in bytes.
func (h header) total() int { return h.offset() + h.arena }

// encode returns the header's constant part.
func (h header) encode() []byte {
	b := make([]byte, headBytes)
	le := binary.LittleEndian
	copy(b, magic)
	binary.NativeEndian.PutUint32(b[8:], byteOrder)
	le.PutUint32(b[12:], headerVersion)
	le.PutUint64(b[16:], uint64(h.page))
	le.PutUint64(b[24:], uint64(h.ranks))

	le.PutUint64(b[32:], uint64(h.arena))
	le.PutUint16(b[40:], uint16(len(h.name)))
	copy(b[42:], h.name)
	copy(b[secretOffset:], h.secret[:])
	copy(b[idOffset:], h.id[:])
	le.PutUint64(b[madeOffset:], h.made)
	return b
}

// parseHeader decodes what encode wrote, and rejects anything else. The header that it returns
// encodes to the same bytes, and its total fits an int.
func parseHeader(b []byte) (header, error) {
	if len(b) < headBytes {
		return header{}, fmt.Errorf("it has %d bytes, fewer than the %d of a header", len(b), headBytes)
	}
	b = b[:headBytes]
	le := binary.LittleEndian
	if !bytes.HasPrefix(b, []byte(magic)) {
		return header{}, fmt.Errorf("it begins with %q instead of %q", b[:len(magic)], magic)
	}

	if order := binary.NativeEndian.Uint32(b[8:]); order != byteOrder {
		return header{}, fmt.Errorf("its byte order is %#08x, this machine's is %#08x", order, byteOrder)
	}
	if version := le.Uint32(b[12:]); version != headerVersion {
		return header{}, versionError(version)
	}

	page, ranks, size, n := le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]), int(le.Uint16(b[40:]))
	if max(page, ranks, size) > math.MaxInt || n > maxName {
		return header{}, fmt.Errorf("its header is corrupt: pages of %d bytes, %d ranks, an arena of %d bytes, a name of %d", page, ranks, size, n)
	}

	h := header{name: string(b[42 : 42+n]), ranks: int(ranks), arena: int(size), page: int(page)}
	copy(h.secret[:], b[secretOffset:])
	copy(h.id[:], b[idOffset:])
	h.made = le.Uint64(b[madeOffset:])
	if err := h.validate(); err != nil {
		return header{}, fmt.Errorf("its header is corrupt: %w", err)
	}
	if !bytes.Equal(h.encode(), b) {
		return header{}, fmt.Errorf("its header is corrupt: bytes follow the name %q", h.name)
	}
	return h, nil
}

// differs returns an error that names the first field in which h, a file's header, differs from
// the header that this rank wants.
func (h header) differs(want header) error {
	switch {
	case h.name != want.name:
		return fmt.Errorf("it belongs to job %q, not to %q", h.name, want.name)
	case h.secret != want.secret:
		return errors.New("it belongs to another job of this name, which has another secret")
	case h.ranks != want.ranks:
		return fmt.Errorf("it is for %d ranks, this process is one of %d: give all the same size", h.ranks, want.ranks)
	case h.page != want.page:
		return fmt.Errorf("it uses pages of %d bytes, this process pages of %d", h.page, want.page)
	case h.arena != want.arena:
		return fmt.Errorf("its arena has %d bytes, this process wants %d: give all ranks the same program and configuration", h.arena, want.arena)
	}

	return nil
}
