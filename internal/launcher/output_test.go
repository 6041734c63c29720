package launcher

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/launchenv"
)

func linesTo(to *bytes.Buffer) *stream {
	return &stream{out: newOutput(new(cursor), to), prefix: "[3] "}
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

// A line that is overwritten is shown as such and not kept, however the text is split; what ends by a
// carriage return and a newline is one line. A terminal clears the line first.
func TestOverwrittenLines(t *testing.T) {
	const text = "10%\r20%\rdone\r\nnext\n"
	for size := 1; size <= len(text); size++ {
		for clear, terminal := range map[string]bool{"": false, "\x1b[K": true} {
			var shown bytes.Buffer
			s := linesTo(&shown)
			s.out.colour = terminal
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				s.write(rest[:n])
				rest = rest[n:]
			}
			require.Equal(t, []string{"done\r", "next"}, s.last.text())
			if size == 1 { // each line is written by itself
				require.Equal(t, "[3] 10%\r"+clear+"[3] 20%\r"+clear+"[3] done\r\n[3] next\n", shown.String())
			}
			require.Equal(t, "[3] 10%\r[3] 20%\r[3] done\r\n[3] next\n", strings.ReplaceAll(shown.String(), "\x1b[K", ""))
		}
	}
}

// A line that grows without a pause is shown, too.
func TestGrowingLine(t *testing.T) {
	var shown bytes.Buffer
	s := linesTo(&shown)
	s.pause = 300 * time.Millisecond
	isShown := func() bool {
		s.out.at.Lock()
		defer s.out.at.Unlock()
		return shown.Len() > 0
	}
	for late := time.Now().Add(10 * time.Second); !isShown(); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(late), "it is never shown")
		s.write([]byte("."))
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
		require.LessOrEqual(t, len(last), 2*tailBytes)
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
	text := "panic: an old one, of a child\nall is well\npanic: no [recovered]\n\tpanic: yes\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.f()\n\t/a.go:7 +0x1\n", 90000)
	s := &stream{} // that is shown nowhere
	s.write([]byte(text[:33]))
	s.write([]byte(text[33:]))
	want := crash(text[strings.Index(text, "panic: no"):])[:len(s.crash)]
	require.Equal(t, want, s.crash)
	require.Greater(t, len(s.crash), crashBytes-1000)
	require.Less(t, len(s.crash), crashBytes)
	lines, stacks := s.crash.message()
	require.Equal(t, []string{"panic: no [recovered]", "\tpanic: yes"}, lines)
	require.Len(t, stacks, 1)
	require.Equal(t, launchenv.Frame{Function: "main.f", File: "/a.go", Line: 7}, stacks[0].Frames[0])
	require.Greater(t, len(stacks[0].Frames), 1000)

	lines, stacks = crash("fatal error: stack overflow\n\nruntime stack:\nruntime.throw()\n\t/p.go:1 +0x1\n\ngoroutine 7 [running]:\n").message()
	require.Equal(t, []string{"fatal error: stack overflow"}, lines)
	require.Equal(t, 7, stacks[0].Number)
	lines, stacks = crash("fatal error: failed to reserve page summary memory\n\nruntime stack:\nruntime.throw()\n\t/p.go:1 +0x1\n").message()
	require.Equal(t, []string{"fatal error: failed to reserve page summary memory"}, lines)
	require.Equal(t, []launchenv.Goroutine{{}}, stacks, "there was none")
	lines, stacks = crash("panic: no\n").message()
	require.Equal(t, []string{"panic: no"}, lines)
	require.Empty(t, stacks)

	// The runtime may say why before that.
	const cgo = "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\nPC=0x1 m=5 sigcode=1\n\ngoroutine 0 [idle]:\nruntime: g 0: unknown pc\n"
	const threads = "runtime: failed to create new OS thread (have 5 already; errno=11)\nfatal error: newosproc\n\ngoroutine 1 [running]:\n"
	s = &stream{}
	s.write([]byte("runtime: 12 s\nall is well\n" + cgo))
	require.Equal(t, cgo, string(s.crash))
	s.write([]byte(threads))
	require.Equal(t, threads[strings.Index(threads, "fatal"):], string(s.crash), "what comes after another crash belongs to that")
	s = &stream{}
	s.write([]byte(threads))
	lines, _ = s.crash.message()
	require.Equal(t, []string{"runtime: failed to create new OS thread (have 5 already; errno=11)", "fatal error: newosproc"}, lines)
}

// What comes after the rank was asked for its stacks is not its last output, and not shown.
func TestStacks(t *testing.T) {
	const words, dump = "all is well\n", "SIGQUIT: quit\nPC=0x1\n"
	asked := linesTo(new(bytes.Buffer))
	asked.write([]byte(words + dump))
	require.Contains(t, asked.last.text(), "SIGQUIT: quit", "it was not asked")
	var shown bytes.Buffer
	asked = linesTo(&shown)
	asked.asked.Store(true)
	asked.write([]byte(words + dump))
	require.Equal(t, "[3] "+words, shown.String())
	require.Equal(t, words, string(asked.last))
	require.Equal(t, dump, string(asked.crash))
}

func TestPrefix(t *testing.T) {
	o := newOutput(new(cursor), new(bytes.Buffer))
	require.Equal(t, "[9] ", o.prefix(9, 10))
	require.Equal(t, "[ 9] ", o.prefix(9, 11))
	require.Equal(t, "[12] ", o.prefix(12, 100))
	require.Equal(t, "[ 12] ", o.prefix(12, 101))
	require.Equal(t, "[0] ", o.prefix(0, 1))
	o.colour = true
	require.Equal(t, "\x1b[36m[ 0]\x1b[0m ", o.prefix(0, 16))
	require.NotEqual(t, strings.Replace(o.prefix(0, 2), "0]", "1]", 1), o.prefix(1, 2))
}

// Lines start with the time at which they came.
func TestTimestamps(t *testing.T) {
	var shown bytes.Buffer
	s := linesTo(&shown)
	s.stamped = true
	before := time.Now().Truncate(time.Millisecond)
	s.write([]byte("one\ntwo\n"))
	for _, text := range []string{"[3] one\n", "[3] two\n"} {
		line, err := shown.ReadString('\n')
		require.NoError(t, err)
		at, rest := line[:len(timeFormat)], line[len(timeFormat):]
		require.Equal(t, text, rest)
		clock, err := time.ParseInLocation(time.DateOnly+" "+timeFormat, before.Format(time.DateOnly)+" "+at, time.Local)
		require.NoError(t, err)
		if clock.Before(before) { // midnight
			clock = clock.AddDate(0, 0, 1)
		}
		require.Less(t, clock.Sub(before), time.Minute)
	}
}

type full struct{ writes int }

func (f *full) Write([]byte) (int, error) { f.writes++; return 0, errors.New("no space left") }

// Output that cannot be written is dropped, so that the ranks can continue.
func TestWriteError(t *testing.T) {
	f := new(full)
	o := newOutput(new(cursor), f)
	o.write([]byte("a\n"))
	o.write([]byte("b\n"))
	require.EqualError(t, o.err, "no space left")
	require.Equal(t, 1, f.writes)
}
