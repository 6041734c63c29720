package ddp

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/atomicfile"
)

// contents are what a file has.
type contents struct {
	header
	values   map[string]elements // of the tensors that were asked for, by the file's names
	sums     map[string]uint32   // of values
	checksum string              // of the state and of all data
}

// all returns the tensors of a file of which all were read.
func (c *contents) all() (tensors []Tensor) {
	for _, t := range c.tensors {
		tensors = append(tensors, Tensor{t.name, t.Shape, c.values[t.name]})
	}
	return tensors
}

// facts returns what all ranks must have read for tensors that have these names in the file.
func (c *contents) facts(names []string) []agree.Fact {
	stored := c.byName()
	facts := []agree.Fact{{Name: "file", Value: "it exists"}}
	for i, name := range names {
		value := "none"
		if t := stored[name]; t != nil {
			value = fmt.Sprintf("%q, %s, CRC %08x", name, t.text(), c.sums[name])
		}
		facts = append(facts, agree.Fact{Name: fmt.Sprint("tensor ", i), Value: value})
	}
	return append(facts, agree.Fact{Name: "state", Value: fmt.Sprintf("%.80s", c.metadata[stateKey])}, agree.Fact{Name: "checksum", Value: c.checksum})
}

// chooser returns what the tensors of a file are read into, by their names, or why it is refused.
type chooser func(h *header) (map[string]elements, error)

// readFile reads from a file what choose selects, after the header was read.
func readFile(path string, choose chooser) (*contents, error) {
	if path == "" { // and not a file that does not exist, with which programs start anew
		return nil, atomicfile.ErrNoPath
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // to open a pipe is to wait for its writer
		return nil, errors.New("it is not a regular file")
	}

	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	return readContents(bufio.NewReaderSize(f, 1<<20), info.Size(), choose)
}

// readContents reads a file of that many bytes.
func readContents(r io.Reader, size int64, choose chooser) (*contents, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	values, err := choose(h)
	if err != nil {
		return nil, err
	}

	c := &contents{header: *h, values: values, sums: map[string]uint32{}}
	sum := sha256.New()
	sum.Write([]byte(h.metadata[stateKey]))
	for _, t := range h.tensors {
		into := values[t.name]
		if into == nil {
			if _, err := io.CopyN(sum, r, int64(t.Offsets[1]-t.Offsets[0])); err != nil {
				return nil, errTorn
			}
			continue
		}

		crc := crc32.New(castagnoli)
		switch err := into.decode(r, io.MultiWriter(sum, crc)); {
		case errors.Is(err, errNoBool):
			return nil, fmt.Errorf("its tensor %.100q is of bools, and %w", t.name, err)
		case err != nil:
			return nil, errTorn
		}
		c.sums[t.name] = crc.Sum32()
	}

	c.checksum = hex.EncodeToString(sum.Sum(nil))
	if h.metadata[versionKey] != "" && h.metadata[hashKey] != c.checksum {
		return nil, errors.New("its checksum is wrong: it was changed after it was written")
	}
	return c, nil
}

// Checkpoint is what a safetensors file has: one of Save, or of another tool such as torch.
type Checkpoint struct {
	// Tensors are in the order of the file. They have the memory of the Checkpoint, and may be passed
	// to Save.
	Tensors []Tensor

	// Metadata are notes of the tool that wrote the file, such as "format": "pt" of torch.
	Metadata map[string]string

	path     string
	contents contents
}

// ReadCheckpoint reads a safetensors file into memory, without a group: for servers and tools.
//
// A file that is torn, changed or none of the format is a *CheckpointError. It is fs.ErrNotExist if
// there is no file.
func ReadCheckpoint(path string) (*Checkpoint, error) {
	c, err := readFile(path, chooseAll)
	if err != nil {
		return nil, &CheckpointError{path, err.Error(), err}
	}

	return &Checkpoint{Tensors: c.all(), Metadata: maps.Clone(c.metadata), path: path, contents: *c}, nil
}

// chooseAll selects all tensors.
func chooseAll(h *header) (map[string]elements, error) {
	all := map[string]elements{}
	for _, t := range h.tensors {
		all[t.name] = newStored[t.DType](t.count())
	}
	return all, nil
}

// State sets *state to the state that Save wrote, as Load of a Reducer does.
func (c *Checkpoint) State(state any) error {
	assign, err := c.contents.decodeState(state)
	if err != nil {
		return &CheckpointError{c.path, err.Error(), err}
	}
	assign()
	return nil
}

// Load copies the values of tensors from the checkpoint, by their names, as LoadWith of a Reducer
// does. Inference lists the model alone and sets AllowUnexpected, for the tensors of an optimizer.
//
// It changes all tensors or none.
func (c *Checkpoint) Load(opts LoadOptions, tensors ...Tensor) (Unmatched, error) {
	names, unmatched, err := c.contents.match(tensors, &opts)
	if err != nil {
		return unmatched, &CheckpointError{c.path, err.Error(), err}
	}
	c.contents.assign(names, tensors)
	return unmatched, nil
}

// Name returns the name of a tensor.
func (t Tensor) Name() string { return t.name }

// Shape returns the lengths of a tensor's dimensions.
func (t Tensor) Shape() []int { return slices.Clone(t.shape) }

// Type returns the format's name of the type of the elements, such as "F32", or "" for the zero
// Tensor.
func (t Tensor) Type() string {
	if t.elements == nil {
		return ""
	}
	return t.elements.typeName()
}

// Values returns the elements of a tensor, in row-major order, and false if they are not of type T.
// They are not copied.
//
// Floats of 8 bits, which Go does not have, are bytes: T is uint8.
func Values[T Storable](t Tensor) ([]T, bool) {
	switch e := t.elements.(type) {
	case vector[T]:
		return e, true
	case opaque:
		values, ok := any([]uint8(e.vector)).([]T)
		return values, ok
	}
	return nil, false
}
