package launcher

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func linesTo(to *bytes.Buffer) *stream {
	return &stream{out: newOutput(new(sync.Mutex), to), prefix: "[3] "}
}

// However a text is split, its lines come out whole, each with its prefix.
func TestLines(t *testing.T) {
	const text = "one\n\ntwo three\nthe last has no end"
	for size := 1; size <= len(text); size++ {
		var shown bytes.Buffer
		s := linesTo(&shown)
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			s.write(rest[:n])
			rest = rest[n:]
			if shown.Len() > 0 {
				require.True(t, strings.HasSuffix(shown.String(), "\n"), "%q", shown.String())
			}
		}
		s.end()
		require.Equal(t, "[3] one\n[3] \n[3] two three\n[3] the last has no end\n", shown.String())
	}
}

// A line may have 64 KiB; longer ones are broken.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for text, want := range map[string]string{
		long + "\n":         "[3] " + long + "\n",
		long + "y\nz\n":     "[3] " + long + "\n[3] y\n[3] z\n",
		long + long + "\n":  "[3] " + long + "\n[3] " + long + "\n",
		long + long + "end": "[3] " + long + "\n[3] " + long + "\n[3] end\n",
	} {
		for _, size := range []int{1000, maxLine, len(text)} {
			var shown bytes.Buffer
			s := linesTo(&shown)
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				s.write(rest[:n])
				rest = rest[n:]
				require.LessOrEqual(t, len(s.rest), maxLine)
			}
			s.end()
			require.True(t, want == shown.String(), "pieces of %d", size)
		}
	}
}

func TestTail(t *testing.T) {
	var last tail
	require.Empty(t, last.text())
	last.add([]byte("a\nb"))
	last.add([]byte("c\n\n"))
	require.Equal(t, []string{"a", "bc"}, last.text())
	for i := range 3000 {
		last.add(bytes.Repeat([]byte{'a' + byte(i%26)}, i%70))
		last.add([]byte("\n"))
		require.LessOrEqual(t, len(last), tailBytes)
	}
	last.add([]byte("the end\n"))
	lines := last.text()
	require.Len(t, lines, tailLines)
	require.Equal(t, strings.Repeat(string(rune('a'+2999%26)), 2999%70), lines[tailLines-2])
	require.Equal(t, "the end", lines[tailLines-1])
	last.add(bytes.Repeat([]byte("long"), tailBytes))
	require.Equal(t, strings.Repeat("long", tailBytes/4), strings.Join(last.text(), ""))
}

// The message and the innermost functions of a crash are kept, however long the rest is.
func TestCrash(t *testing.T) {
	text := "panic: an old one, of a child\nall is well\npanic: no [recovered]\n\tpanic: yes\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.f()\n\t/a.go:7 +0x1\n", 9000)
	s := &stream{} // that is shown nowhere
	s.write([]byte(text[:33]))
	s.write([]byte(text[33:]))
	want := crash{"panic: no [recovered]", "\tpanic: yes", "", "goroutine 1 [running]:", "main.f()", "\t/a.go:7 +0x1", "main.f()", "\t/a.go:7 +0x1", "main.f()", "\t/a.go:7 +0x1"}
	require.Equal(t, want, s.crash)

	f, err := os.Create(filepath.Join(t.TempDir(), "rank-0.err"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString(text)
	require.NoError(t, err)
	last, c := endOfFile(f)
	require.Equal(t, want, c)
	require.Equal(t, s.last.text(), last.text())
}

func TestPrefix(t *testing.T) {
	o := newOutput(new(sync.Mutex), new(bytes.Buffer))
	require.Equal(t, "[12] ", o.prefix(12))
	o.colour = true
	require.Equal(t, "\x1b[36m[0]\x1b[0m ", o.prefix(0))
	require.NotEqual(t, strings.Replace(o.prefix(0), "0]", "1]", 1), o.prefix(1))
}

type full struct{ writes int }

func (f *full) Write([]byte) (int, error) { f.writes++; return 0, errors.New("no space left") }

// Output that cannot be written is dropped, so that the ranks can continue.
func TestWriteError(t *testing.T) {
	f := new(full)
	o := newOutput(new(sync.Mutex), f)
	o.write([]byte("a\n"))
	o.write([]byte("b\n"))
	require.EqualError(t, o.err, "no space left")
	require.Equal(t, 1, f.writes)
}
