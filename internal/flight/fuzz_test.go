package flight

import (
	"encoding/binary"
	"encoding/json"
	"testing"
)

// Read makes a valid document of any memory.
func FuzzRead(f *testing.F) {
	part := make([]byte, PartBytes(1024))
	b := NewBook(part, 0, 1)
	var l Lane
	b.Open(&l, Group{ID: 1, Name: "name", Size: 2})
	for n := range uint64(70) {
		l.Begin(n+1, b.NewWhat("all_reduce", "float32", "sum", "ring").WithRoot(1), 5, "label", true)
		l.Inside()
		l.End(true)
		b.EndMessage(b.BeginMessage(&l, b.NewWhat("send", "int8", "", ""), 1, 2, 3, "", true), false)
		b.Mark(&l, "mark", int(n))
		l.Count(b.NewWhat("all_reduce", "", "", ""), Counter{Calls: 1, Bytes: n, Duration: 3, Waiting: 2})
	}
	f.Add(uint(0), []byte{})
	f.Add(uint(32), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint(pageBytes), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, at uint, overwritten []byte) {
		torn := make([]byte, len(part))
		copy(torn, part)
		at %= uint(len(torn))
		copy(torn[at:], overwritten)
		binary.LittleEndian.PutUint64(torn, magic)
		r, ok := Read(torn)
		if !ok {
			t.Fatal("not read")
		}
		text, err := json.Marshal(Document{Version: Version, Job: "x", Size: 1, Ranks: []Rank{r}})
		if err == nil {
			_, err = Parse(text)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// Parse returns an error or a document, whatever the text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version": 1, "ranks": [{"groups": [{"size": 2, "calls": [{"number": 3, "root": 1, "state": "done"}]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if (d == nil) != (err != nil) {
			t.Errorf("%v, %v", d, err)
		}
	})
}
