package launcher

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// maxLine is the longest line; longer ones are broken.
const maxLine = 64 << 10

// output is the common output of many ranks.
type output struct {
	mu     *sync.Mutex // one for all outputs: they may be the same terminal
	to     io.Writer
	colour bool
	err    error // the first; later output is dropped
}

func newOutput(mu *sync.Mutex, to io.Writer) *output {
	f, isFile := to.(*os.File)
	return &output{mu: mu, to: to, colour: isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""}
}

func (o *output) write(lines []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && len(lines) > 0 {
		_, o.err = o.to.Write(lines)
	}
}

// colours are distinguishable from each other and from the text, on light and
// dark terminals. Red is reserved for failures.
var colours = []int{36, 33, 35, 32, 34}

// prefix returns the prefix of a rank's lines.
func (o *output) prefix(rank int) string {
	if o.colour {
		return fmt.Sprintf("\x1b[%dm[%d]\x1b[0m ", colours[rank%len(colours)], rank)
	}
	return fmt.Sprintf("[%d] ", rank)
}

// stream splits one output of one rank into lines.
type stream struct {
	out    *output // nil: not shown
	prefix string
	rest   []byte // an incomplete line
	lines  []byte // a buffer for complete lines
	last   tail
	crash  crash
}

func (s *stream) write(p []byte) {
	s.last.add(p)
	s.rest = append(s.rest, p...)
	s.lines = s.lines[:0]
	text := s.rest
	for {
		end := bytes.IndexByte(text, '\n')
		switch {
		case end < 0 && len(text) <= maxLine:
			s.rest = append(s.rest[:0], text...)
			if s.out != nil {
				s.out.write(s.lines)
			}
			return
		case end < 0 || end > maxLine:
			s.line(text[:maxLine])
			text = text[maxLine:]
		default:
			s.line(text[:end])
			text = text[end+1:]
		}
	}
}

// end writes an incomplete last line.
func (s *stream) end() {
	if len(s.rest) > 0 {
		s.write([]byte("\n"))
	}
}

func (s *stream) line(text []byte) {
	s.crash.add(text)
	if s.out == nil {
		return
	}
	s.lines = append(s.lines, s.prefix...)
	s.lines = append(s.lines, text...)
	s.lines = append(s.lines, '\n')
}

// tail is the end of an output.
type tail []byte

const (
	tailBytes = 8 << 10
	tailLines = 10
)

func (t *tail) add(p []byte) {
	p = p[max(0, len(p)-tailBytes):]
	if keep := tailBytes - len(p); len(*t) > keep {
		*t = append((*t)[:0], (*t)[len(*t)-keep:]...)
	}
	*t = append(*t, p...)
}

// text returns the last lines.
func (t tail) text() []string {
	text := strings.TrimRight(string(t), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):]
}

// crash is the start of the Go runtime's message when it ends a program: the
// message of a panic or a fatal error, and the innermost functions.
type crash []string

// add processes the next line.
func (c *crash) add(line []byte) {
	if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
		*c = (*c)[:0]
	} else if len(*c) == 0 || len(*c) == tailLines {
		return
	}
	*c = append(*c, string(line[:min(len(line), tailBytes/tailLines)]))
}

// crashBytes is the length of the end of a file that is searched for a crash.
const crashBytes = 1 << 20

// endOfFile returns the end of a file and the crash in it, or nothing if it is unreadable.
func endOfFile(f *os.File) (t tail, c crash) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil
	}
	end := make([]byte, min(info.Size(), crashBytes))
	n, _ := f.ReadAt(end, info.Size()-int64(len(end)))
	for line := range bytes.Lines(end[:n]) {
		c.add(bytes.TrimSuffix(line, []byte("\n")))
	}
	return tail(end[max(0, n-tailBytes):n]), c
}
