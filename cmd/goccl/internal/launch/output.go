package launch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// maxLine is how long a line may be, without its end. Longer ones are broken.
const maxLine = 64 << 10

// An output is where lines of many ranks go.
type output struct {
	mu     *sync.Mutex // one for all outputs: they may be the same terminal
	to     io.Writer
	colour bool
	err    error // the first; what comes after it is dropped
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

// colours are those that can be told from each other, and from the text, on light and
// dark terminals. Red is left to what has failed.
var colours = []int{36, 33, 35, 32, 34}

// prefix is what stands before a rank's lines.
func (o *output) prefix(rank int) string {
	if o.colour {
		return fmt.Sprintf("\x1b[%dm[%d]\x1b[0m ", colours[rank%len(colours)], rank)
	}
	return fmt.Sprintf("[%d] ", rank)
}

// A stream makes lines of what one rank writes to one of its outputs.
type stream struct {
	out    *output // nil: shown nowhere
	prefix string
	rest   []byte // a line that has not ended
	lines  []byte // for the output; kept for its memory
	last   tail
}

func (s *stream) write(p []byte) {
	s.last.add(p)
	if s.out == nil {
		return
	}
	s.rest = append(s.rest, p...)
	s.lines = s.lines[:0]
	text := s.rest
	for {
		end := bytes.IndexByte(text, '\n')
		switch {
		case end < 0 && len(text) <= maxLine:
			s.rest = append(s.rest[:0], text...)
			s.out.write(s.lines)
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

// end writes a last line that the rank has not ended.
func (s *stream) end() {
	if len(s.rest) > 0 {
		s.write([]byte("\n"))
	}
}

func (s *stream) line(text []byte) {
	s.lines = append(s.lines, s.prefix...)
	s.lines = append(s.lines, text...)
	s.lines = append(s.lines, '\n')
}

// A tail is the end of what was written.
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

// tailOfFile returns the end of a file, or nothing if it cannot be read.
func tailOfFile(f *os.File) (t tail) {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	t = make(tail, min(info.Size(), tailBytes))
	n, _ := f.ReadAt(t, info.Size()-int64(len(t)))
	return t[:n]
}
