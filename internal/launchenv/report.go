package launchenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The variables by which launchers name a file for the error of a rank.
const (
	ReportVariable  = "GOCCL_ERROR_FILE"
	torchErrorsFile = "TORCHELASTIC_ERROR_FILE"
)

// Report is what a rank tells its launcher when it fails; see "Reports" in the package
// comment.
type Report struct {
	Version int       `json:"version"` // 1
	Rank    int       `json:"rank"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"` // when the rank failed, to the nanosecond
	Kind    FailKind  `json:"kind"`
	// Message is the text of the error, or "panic: " and what the program panicked with.
	Message string `json:"message"`
	// Frames are where the program panicked: its own functions, the innermost first,
	// without those of the Go runtime and of goccl.
	Frames []Frame `json:"frames,omitempty"`
	// Because is empty if the failure is the rank's own. Otherwise it says in which way
	// the failure is only a consequence, and Ranks says of which ranks.
	Because Because `json:"because,omitempty"`
	// Ranks are the ranks that the error names, numbered as in the job and ascending. It
	// may be empty even if Because is not: some errors number ranks as their group does.
	Ranks []int `json:"ranks,omitempty"`
}

// FailKind says what failed.
type FailKind string

// Kinds of failures.
const (
	FailedInit   FailKind = "init"   // dist.InitProcessGroup, or dist.Spawn before the worker started
	FailedError  FailKind = "error"  // the worker returned an error
	FailedPanic  FailKind = "panic"  // the worker panicked
	FailedCall   FailKind = "call"   // a call on a group; the program has not ended yet, and may go on
	FailedGoexit FailKind = "goexit" // the worker ended its goroutine by runtime.Goexit
)

// Because says how a failure follows from other ranks.
type Because string

// Ways in which a rank fails because of others.
const (
	BecauseAborted  Because = "aborted"   // Ranks failed, and said so to this rank
	BecauseRefused  Because = "refused"   // Ranks refused the arguments of a call that this rank accepted
	BecausePeerLost Because = "peer_lost" // Ranks left, or their processes ended
	BecauseTimeout  Because = "timeout"   // this rank waited for Ranks in vain
	BecauseCanceled Because = "canceled"  // the context of the job ended
)

// Frame is a function on a stack.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

func (f Frame) String() string {
	return fmt.Sprintf("%s at %s:%d", f.Function, filepath.Base(f.File), f.Line)
}

// Send writes r to the file that the launcher has named, if it has named one. The
// report before it is replaced.
func (r *Report) Send(getenv func(string) string) error {
	switch {
	case getenv(ReportVariable) != "":
		return replace(getenv(ReportVariable), r)
	case getenv(torchErrorsFile) != "":
		return replace(getenv(torchErrorsFile), r.torch())
	}
	return nil
}

// TakeBack removes what Send wrote: the rank has recovered.
func TakeBack(getenv func(string) string) error {
	for _, variable := range []string{ReportVariable, torchErrorsFile} {
		if path := getenv(variable); path != "" {
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
	}
	return nil
}

// ReadReport reads the report in the file path. It returns nil if the rank has made
// none.
func ReadReport(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("the report of a rank, %s: %w", path, err)
	}
	return r, nil
}

// replace writes v to the file path as JSON. No reader ever finds part of it.
func replace(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// torch returns the report as torch.distributed.elastic's ErrorHandler writes it.
func (r *Report) torch() any {
	stack := r.Message
	for _, f := range r.Frames {
		stack += fmt.Sprintf("\n  %s\n    %s:%d", f.Function, f.File, f.Line)
	}
	seconds := r.Time.Unix()
	if r.Because != "" {
		seconds++ // after a cause in the same second
	}
	type info struct {
		Stack string `json:"py_callstack"` // shown instead of the message
		Time  string `json:"timestamp"`    // in seconds; the least is the root cause
	}
	type message struct {
		Message string `json:"message"`
		Info    info   `json:"extraInfo"`
	}
	return struct {
		Message message `json:"message"`
	}{message{r.Message, info{stack, strconv.FormatInt(seconds, 10)}}}
}

// OwnFrames returns the program's own functions in the stack of a worker, as debug.Stack
// writes it: without those of the Go runtime and of goccl, and of a panic those below it.
func OwnFrames(stack []byte) (frames []Frame) {
	_, below, panicked := strings.Cut(string(stack), "\npanic(")
	if !panicked {
		below = string(stack)
	}
	lines := strings.Split(below, "\n")
	for i := 1; i+1 < len(lines); i++ {
		function, place := lines[i], lines[i+1]
		if strings.HasPrefix(function, library+"dist.(*rank).run") || strings.HasPrefix(function, "created by ") {
			break // what follows has started the worker
		}
		if f, ok := frame(function, place); ok && !isLibrary(f.Function) {
			frames = append(frames, f)
		}
	}
	return frames
}

// frame reads the two lines that debug.Stack writes for a function.
func frame(function, place string) (f Frame, ok bool) {
	arguments := strings.LastIndexByte(function, '(')
	place, indented := strings.CutPrefix(place, "\t")
	if arguments <= 0 || function[0] == '\t' || !indented {
		return f, false
	}
	place, _, _ = strings.Cut(place, " +0x")
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 {
		return f, false
	}
	line, err := strconv.Atoi(place[colon+1:])
	return Frame{function[:arguments], place[:colon], line}, err == nil
}

// library is how the names of goccl's functions begin.
const library = "github.com/goccl/goccl/"

// isLibrary reports whether a function belongs to the Go runtime or to goccl.
func isLibrary(function string) bool {
	if strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "runtime/") || function == "panic" {
		return true
	}
	inside, ours := strings.CutPrefix(function, library)
	return ours && slices.ContainsFunc([]string{"dist", "ccl", "transport", "algorithms", "internal"}, func(room string) bool {
		return strings.HasPrefix(inside, room+".") || strings.HasPrefix(inside, room+"/")
	})
}
