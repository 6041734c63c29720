package launchenv

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"syscall"
)

// ResultVariable names the file to which a rank writes what it tells its launcher beside failures.
const ResultVariable = "GOCCL_RESULT_FILE"

// Result is what a rank tells its launcher beside failures; see "Reports" in the package comment.
type Result struct {
	Version   int             `json:"version"` // 1
	PID       int             `json:"pid"`
	Build     string          `json:"build,omitempty"`     // of the program; other builds have others
	Transport string          `json:"transport,omitempty"` // that connected the rank when it joined last
	Left      bool            `json:"left,omitempty"`      // it has left the others since, in an orderly way
	Value     json.RawMessage `json:"value,omitempty"`     // of the program
}

// sent is what this process has sent.
var sent struct {
	sync.Mutex
	Result
}

// Build returns which build of the program this process runs: a hash of the beginning of its file,
// where the linker's ids are.
func Build() (string, error) {
	f, err := syscall.Open("/proc/self/exe", syscall.O_RDONLY|syscall.O_CLOEXEC, 0) // os.Open takes three descriptors, or crashes
	if err != nil {
		return "", err
	}
	head := make([]byte, 64<<10)
	n, err := syscall.Read(f, head)
	return digest(string(head[:max(n, 0)])), errors.Join(err, syscall.Close(f))
}

// SendBuild tells the launcher, if it wants to know, which build of the program the rank runs.
func SendBuild(getenv func(string) string) error {
	build, err := Build()
	if err != nil {
		return err
	}
	return send(getenv, func(r *Result) { r.Build = build })
}

// SendTransport tells the launcher, if it wants to know, by which transport the rank has joined
// the others.
func SendTransport(getenv func(string) string, transport string) error {
	return send(getenv, func(r *Result) { r.Transport, r.Left = transport, false })
}

// SendLeft tells the launcher, if it wants to know, that the rank has left the others.
func SendLeft(getenv func(string) string) error {
	return send(getenv, func(r *Result) { r.Left = true })
}

// SendValue gives the launcher, if it wants one, the rank's value. It replaces an earlier one.
func SendValue(getenv func(string) string, value json.RawMessage) error {
	return send(getenv, func(r *Result) { r.Value = value })
}

func send(getenv func(string) string, change func(*Result)) error {
	path := getenv(ResultVariable)
	if path == "" {
		return nil
	}
	sent.Lock()
	defer sent.Unlock()
	change(&sent.Result)
	sent.Version, sent.PID = 1, os.Getpid()
	return replace(path, &sent.Result)
}

// ReadResult reads what a rank has sent. It returns nil if the rank told nothing.
func ReadResult(path string) (*Result, error) { return readFile[Result](path, "the result of a rank") }
