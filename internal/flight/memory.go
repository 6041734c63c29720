package flight

import (
	"encoding/binary"
	"strings"
	"sync/atomic"

	"github.com/goccl/goccl/internal/text"
)

// Sizes in bytes.
const (
	pageBytes   = 4 << 10
	recordBytes = 64
	nameBytes   = 32
	laneBytes   = 5 << 10
	laneHead    = 256
	laneText    = 192
)

// LaneRecords is the number of records that a lane keeps.
const LaneRecords = 60

// laneCounters is the number of counters of a lane.
const laneCounters = 24

// MarkRecords is the number of marks that a part keeps, beside its table.
const MarkRecords = 24

// maxNames is the number of names in a part's table. The name with the index 0 is empty.
const maxNames = (pageBytes - 128 - MarkRecords*recordBytes) / nameBytes

// magic is the first word of a part that a rank writes to: GFLIGHT4 in little-endian order. It
// changes with the format.
const magic = 0x34544847494c4647

// PartBytes returns the length of a rank's part in a job of that many ranks. Parts of 80 KiB have
// lanes for messages and 14 groups. With more than 8 ranks the parts of all ranks share 640 KiB,
// but none is shorter than 20 KiB: lanes for messages and 2 groups.
func PartBytes(ranks int) int {
	return min(max(160/ranks, 5), 20) * pageBytes
}

// table is the first page of a part.
type table struct {
	magic  atomic.Uint64 // stored last
	rank   atomic.Uint64
	pid    atomic.Uint64
	named  atomic.Uint64 // number of names
	hidden atomic.Uint64 // open groups whose lanes are on the heap
	_      [128 - 5*8]byte
	names  [maxNames][nameBytes / 8]atomic.Uint64
	marks  [MarkRecords]record
}

// laneMemory is a lane. Its head is a sequence lock whose counter is edition.
type laneMemory struct {
	edition atomic.Uint64 // odd while the head changes; 0: never used
	group   atomic.Uint64 // the group's id, the same on all ranks
	rank    atomic.Uint64 // this rank's number in the group
	size    atomic.Uint64 // number of ranks
	joined  atomic.Uint64 // calls before the first of the program's
	closed  atomic.Uint64 // 1: the rank has left the group; 2: another group may take the lane
	_       [laneHead - laneText - 6*8]byte
	name    [laneText / 8]atomic.Uint64
	records [LaneRecords]record

	counters counters // of the messages' lane: those of groups that have no lane any more
	_        [laneBytes - laneHead - LaneRecords*recordBytes - laneCounters*5*8]byte
}

// record is one call, message or mark. Its head is a sequence lock. Readers load its words
// atomically; put and publish store them.
type record [recordBytes / 8]uint64

// Indices of a record's words.
const (
	headWord = iota
	whatWord
	countWord
	begunWord
	endedWord
	labelWord
	tagWord    = labelWord // of a message,
	textWord   = labelWord + 1
	labelWords = 3
)

// States of a record.
const (
	empty = iota
	begun
	inside
	done
	failed
	rejected
	writing = 255
)

// setText stores a text of at most 8*len(words) bytes, cut.
func setText(words []atomic.Uint64, text string) {
	for i := range words {
		words[i].Store(packWord(text, 8*i))
	}
}

// packWord returns the eight bytes of a text from an offset on, with zeros behind its end.
func packWord(text string, at int) (word uint64) {
	for k := 0; k < 8 && at+k < len(text); k++ {
		word |= uint64(text[at+k]) << (8 * k)
	}
	return word
}

// textOf decodes words up to the first zero byte. Characters that cannot be printed become spaces,
// since the memory may hold anything.
func textOf(words ...uint64) string {
	b := make([]byte, 0, 8*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	s, _, _ := strings.Cut(string(b), "\x00")
	s = strings.TrimSuffix(strings.ToValidUTF8(s, "\ufffd"), "\ufffd") // the end of a text that was cut
	return text.Printable(s)
}

func loadText(words []atomic.Uint64) string {
	loaded := make([]uint64, len(words))
	for i := range words {
		loaded[i] = words[i].Load()
	}
	return textOf(loaded...)
}
