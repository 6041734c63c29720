package launcher

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/goccl/goccl/internal/launchenv"
)

// maxLine is the longest line; longer ones are broken.
const maxLine = 64 << 10

// output is the common output of many ranks.
type output struct {
	at     *cursor // one for all outputs: they may be the same terminal
	to     io.Writer
	colour bool
	err    error        // the first; later output is dropped
	begun  atomic.Int64 // when the write began that goes on, in ns since 1970; 0: none does
}

// cursor is where the last output has ended.
type cursor struct {
	sync.Mutex
	isBack bool // at the start of a line that is to be overwritten
}

func newOutput(at *cursor, to io.Writer) *output {
	f, isFile := to.(*os.File)
	return &output{at: at, to: to, colour: isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""}
}

func (o *output) write(lines []byte) {
	o.at.Lock()
	defer o.at.Unlock()
	if o.err != nil || len(lines) == 0 {
		return
	}
	if o.at.isBack && o.colour {
		lines = append([]byte("\x1b[K"), lines...) // a longer line would show behind a shorter one
	}
	o.at.isBack = lines[len(lines)-1] == '\r'
	o.begun.Store(time.Now().UnixNano())
	_, o.err = o.to.Write(lines)
	o.begun.Store(0)
}

// colours are distinguishable from each other and from the text, on light and
// dark terminals. Red is reserved for failures.
var colours = []int{36, 33, 35, 32, 34}

// prefix returns the prefix of the lines of one of that many ranks. All have the same length.
func (o *output) prefix(rank, ranks int) string {
	number := fmt.Sprintf("[%*d]", len(strconv.Itoa(ranks-1)), rank)
	if o.colour {
		number = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colours[rank%len(colours)], number)
	}
	return number + " "
}

// timeFormat is the format of the time at the start of a line.
const timeFormat = "15:04:05.000 "

// unfinishedPause is the time after which a line without an end is shown.
const unfinishedPause = time.Second

// stream splits one output of one rank into lines.
type stream struct {
	mu      sync.Mutex
	pause   time.Duration // after which an incomplete line is shown; 0: never
	timer   *time.Timer   // of the pause; nil at first
	out     *output       // nil: not shown
	file    *rankFile     // nil: shown only
	fileErr error         // of file; later output is dropped
	prefix  string
	stamped bool   // lines start with the time
	rest    []byte // an incomplete line
	lines   []byte // a buffer for complete lines
	last    tail
	crash   crash

	asked  atomic.Bool // the rank was asked for its stacks
	stacks bool        // it is writing them: they are kept in crash, and not shown
}

func (s *stream) write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pause == 0 || s.out == nil:
	case s.timer == nil:
		s.timer = time.AfterFunc(s.pause, s.end)
	case len(s.rest) == 0 || bytes.ContainsAny(p, "\r\n"): // otherwise it is the same line
		s.timer.Reset(s.pause)
	}

	if s.file != nil && s.fileErr == nil {
		s.fileErr = s.file.write(p)
	}
	s.split(p)
}

func (s *stream) split(p []byte) {
	s.rest = append(s.rest, p...)
	s.lines = s.lines[:0]
	text := s.rest

	for {
		end := lineEnd(text)
		switch {
		case end < 0 && len(text) <= maxLine:
			s.rest = append(s.rest[:0], text...)
			if s.out != nil {
				s.out.write(s.lines)
			}
			return
		// A long line is passed on in parts.
		case end < 0 || end > maxLine:
			s.line(text[:maxLine], '\n')
			text = text[maxLine:]
		default:
			s.line(text[:end], text[end])
			text = text[end+1:]
		}
	}
}

// lineEnd returns where the first line ends, or -1: at a newline, or at a carriage return with
// which a program starts to overwrite the line. A last one may belong to a newline.
func lineEnd(text []byte) int {
	end := bytes.IndexAny(text, "\r\n")
	switch {
	case end < 0 || text[end] == '\n':
		return end
	case end+1 == len(text):
		return -1
	case text[end+1] == '\n':
		return end + 1
	}
	return end
}

// end ends an incomplete line.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) > 0 {
		s.split([]byte("\n"))
	}
}

func (s *stream) line(text []byte, end byte) {
	s.crash.add(text)
	s.stacks = s.stacks || s.asked.Load() && bytes.HasPrefix(text, []byte(stacksStart))
	if s.stacks {
		return
	}

	if end == '\n' { // otherwise it is overwritten
		s.last.add(text)
		s.last.add([]byte{'\n'})
	}
	if s.out == nil {
		return
	}
	if s.stamped {
		s.lines = time.Now().AppendFormat(s.lines, timeFormat)
	}
	s.lines = append(s.lines, s.prefix...)
	s.lines = append(s.lines, text...)
	s.lines = append(s.lines, end)
}

// tail is the end of an output.
type tail []byte

const (
	tailBytes = 8 << 10
	tailLines = 10
)

func (t *tail) add(p []byte) {
	p = p[max(0, len(p)-tailBytes):]
	if len(*t)+len(p) > 2*tailBytes { // seldom, so that a line costs little
		*t = append((*t)[:0], t.end()...)
	}
	*t = append(*t, p...)
}

// end returns the last bytes.
func (t tail) end() []byte { return t[max(0, len(t)-tailBytes):] }

// text returns the last lines.
func (t tail) text() []string {
	text := strings.TrimRight(string(t.end()), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):]
}

// crash is what the Go runtime writes when it ends a program, from the message of a panic or a
// fatal error, or the name of a signal, on.
type crash []byte

// crashBytes is the most that is kept of a crash.
const crashBytes = 1 << 20

// stacksStart is the first line of the stacks of a Go program that gets SIGQUIT.
const stacksStart = "SIGQUIT: quit"

// crashStarts are the beginnings of crashes.
var crashStarts = []string{
	"panic: ", "fatal error: ", stacksStart, "SIGABRT: abort", "SIGSEGV: segmentation violation", "SIGBUS: bus error",
	"SIGILL: illegal instruction", "SIGFPE: floating-point exception",
}

// prefaces are the beginnings of lines in which the runtime says why it crashes, before that.
var prefaces = []string{"runtime: ", "runtime/cgo: "}

// prefaceBytes is the most that is kept of prefaces.
const prefaceBytes = 512

// add processes the next line.
func (c *crash) add(line []byte) {
	begins := func(line []byte, starts []string) bool {
		return slices.ContainsFunc(starts, func(start string) bool { return bytes.HasPrefix(line, []byte(start)) })
	}
	hasBegun := len(*c) > prefaceBytes
	for earlier := range bytes.Lines((*c)[:min(len(*c), prefaceBytes)]) {
		hasBegun = hasBegun || begins(earlier, crashStarts)
	}

	isStart := begins(line, crashStarts)
	switch {
	case isStart && hasBegun:
		*c = (*c)[:0]
	case isStart:
	case !hasBegun && !begins(line, prefaces):
		*c = (*c)[:0] // it had no preface
		return
	case len(*c)+len(line) >= crashBytes:
		return
	}
	*c = append(append(*c, line...), '\n')
}

// message returns the text of the panic or error, and the stacks below it.
func (c crash) message() (lines []string, stacks []launchenv.Goroutine) {
	text, below, _ := strings.Cut(string(c), "\n\ngoroutine ")
	text, _, isFatal := strings.Cut(text, "\n\nruntime stack:\n")
	stacks = launchenv.ParseStacks("goroutine " + below)
	if isFatal && len(stacks) == 0 {
		stacks = make([]launchenv.Goroutine, 1) // the runtime had started none
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n"), stacks
}
