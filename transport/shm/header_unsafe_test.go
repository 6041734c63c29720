package shm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

func testHeader(t testing.TB) header {
	t.Helper()
	h, err := newHeader(Job{Name: "/job-1.a_B", Rank: 1, Size: 3, Secret: "hush"}, 10000)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHeaderSurvivesItsBytes(t *testing.T) {
	h := testHeader(t)
	if h.name != "job-1.a_B" || h.offset()%os.Getpagesize() != 0 || h.offset() < seatsOffset+3*seatBytes || h.total() != h.offset()+10000 {
		t.Errorf("%+v begins its arena at %d and has %d bytes", h, h.offset(), h.total())
	}
	got, err := parseHeader(h.encode())
	if err != nil || got != h {
		t.Errorf("got %+v, %v, want %+v", got, err, h)
	}
	if err := got.differs(h); err != nil {
		t.Error(err)
	}
}

// The parser or the comparison notices each changed bit, except in the id and the time, which
// rank 0 chooses.
func TestHeaderNoticesEveryBit(t *testing.T) {
	h := testHeader(t)
	for i := range headBytes * 8 {
		if i/8 >= idOffset && i/8 < madeOffset+8 {
			continue
		}
		b := h.encode()
		b[i/8] ^= 1 << (i % 8)
		if got, err := parseHeader(b); err == nil && got.differs(h) == nil {
			t.Errorf("bit %d of byte %d may be anything", i%8, i/8)
		}
	}
}

// Each kind of mismatch has its own message, with the found and the expected value.
func TestHeaderSaysWhatIsWrong(t *testing.T) {
	h := testHeader(t)
	le := binary.LittleEndian
	for want, spoil := range map[string]func(b []byte){
		`begins with "ELFELFEL"`:   func(b []byte) { copy(b, "ELFELFEL") },
		"byte order is 0x04030201": func(b []byte) { binary.NativeEndian.PutUint32(b[8:], 0x04030201) },
		"version 99, this program": func(b []byte) { le.PutUint32(b[12:], 99) },
		"pages of 5000 bytes":      func(b []byte) { le.PutUint64(b[16:], 5000) },
		fmt.Sprintf("pages of %d bytes, this process pages of %d", 2*h.page, h.page): func(b []byte) { le.PutUint64(b[16:], uint64(2*h.page)) },
		"corrupt: 0 ranks":                         func(b []byte) { le.PutUint64(b[24:], 0) },
		"corrupt: 65537 ranks":                     func(b []byte) { le.PutUint64(b[24:], 65537) },
		"is for 4 ranks, this process is one of 3": func(b []byte) { le.PutUint64(b[24:], 4) },
		"an arena of 0 bytes":                      func(b []byte) { le.PutUint64(b[32:], 0) },
		"an arena of 9223372036854775807 bytes":    func(b []byte) { le.PutUint64(b[32:], math.MaxInt64) },
		"an arena of 18446744073709551615 bytes":   func(b []byte) { le.PutUint64(b[32:], math.MaxUint64) },
		"arena has 9999 bytes, this process wants": func(b []byte) { le.PutUint64(b[32:], 9999) },
		"a name of 129":                            func(b []byte) { le.PutUint16(b[40:], 129) },
		"name \"\" has 0 characters":               func(b []byte) { le.PutUint16(b[40:], 0) },
		"has the character '/'":                    func(b []byte) { b[42] = '/' },
		`job "job-1.a_C", not to "job-1.a_B"`:      func(b []byte) { b[50] = 'C' },
		"has another secret":                       func(b []byte) { b[secretOffset] ^= 1 },
		"bytes follow the name":                    func(b []byte) { b[255] = 1 },
	} {
		b := h.encode()
		spoil(b)
		got, err := parseHeader(b)
		if err == nil {
			err = got.differs(h)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := parseHeader(h.encode()[:headBytes-1]); err == nil || !strings.Contains(err.Error(), "255 bytes, fewer than the 256") {
		t.Errorf("of 255 bytes: %v", err)
	}
}

func TestJobIsChecked(t *testing.T) {
	for want, c := range map[string]struct {
		job  Job
		size int
	}{
		"rank 2 does not exist in a job of 2": {Job{Name: "x", Rank: 2, Size: 2}, 1},
		"rank -1 does not exist":              {Job{Name: "x", Rank: -1, Size: 2}, 1},
		"rank 0 does not exist in a job of 0": {Job{Name: "x", Rank: 0, Size: 0}, 1},
		"65537 ranks, want 1 to 65536":        {Job{Name: "x", Rank: 0, Size: 65537}, 1},
		"arena of 0":                          {Job{Name: "x", Rank: 0, Size: 1}, 0},
		"arena of -1":                         {Job{Name: "x", Rank: 0, Size: 1}, -1},
		"arena of 9223372036854775807":        {Job{Name: "x", Rank: 0, Size: 65536}, math.MaxInt},
		"has 0 characters":                    {Job{Name: "/", Rank: 0, Size: 1}, 1},
		"has 129 characters":                  {Job{Name: strings.Repeat("x", 129), Rank: 0, Size: 1}, 1},
		`"/x" has the character '/'`:          {Job{Name: "//x", Rank: 0, Size: 1}, 1},
		`"../x" has the character '/'`:        {Job{Name: "../x", Rank: 0, Size: 1}, 1},
		`"a\x00b" has the character '\x00'`:   {Job{Name: "a\x00b", Rank: 0, Size: 1}, 1},
	} {
		if _, err := newHeader(c.job, c.size); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %d bytes: got %v, want %q", c.job, c.size, err, want)
		}
	}
	if h, err := newHeader(Job{Name: strings.Repeat("x", 128), Rank: 65535, Size: 65536}, 1); err != nil || h.total() > 2<<20 {
		t.Errorf("the largest job: %v, %d bytes", err, h.total())
	}
}

// decodeSeat reads a seat as it is in memory.
func TestPlaceLiesAsDrawn(t *testing.T) {
	p := &seat{start: 1 << 40, pid: 77}
	p.state.Store(attached)
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
	if want := (occupant{start: 1 << 40, pid: 77, state: attached}); len(b) != seatBytes || decodeSeat(b) != want {
		t.Errorf("%d bytes are %+v, want %d and %+v", len(b), decodeSeat(b), seatBytes, want)
	}
}

// A file may contain any bytes.
func FuzzParseHeader(f *testing.F) {
	good := testHeader(f).encode()
	f.Add(good)
	f.Add(good[:17])
	f.Add(bytes.Repeat([]byte{0xff}, headBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if !bytes.Equal(h.encode(), b[:headBytes]) {
			t.Errorf("%+v encodes to other bytes", h)
		}
		if h.total() <= h.arena || h.offset() < seatsOffset+h.ranks*seatBytes || filepath.Base("goccl-"+h.name) != "goccl-"+h.name {
			t.Errorf("%+v: arena at %d of %d bytes", h, h.offset(), h.total())
		}
	})
}
