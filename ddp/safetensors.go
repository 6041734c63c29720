package ddp

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/atomicfile"
)

// A safetensors file (https://huggingface.co/docs/safetensors) is the length of the header, 8
// bytes, the header, JSON, and the tensors, little-endian, without gaps.

// tensorEntry is a tensor in the header.
type tensorEntry struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"` // in the data, in bytes
}

// Keys of the metadata.
const (
	metadataKey = "__metadata__"
	versionKey  = "goccl.checkpoint"
	stateKey    = "goccl.state"
	hashKey     = "goccl.sha256" // of the state and the data
	version     = "1"
)

// maxHeader is the format's limit.
const maxHeader = 100_000_000

// typeNames are the format's names of types.
var typeNames = map[ccl.DType]string{ccl.Float32: "F32", ccl.Float64: "F64", ccl.Float16: "F16", ccl.BFloat16: "BF16"}

// entries returns the header's tensors, in the order of the data, and the length of the data.
func entries(tensors []Tensor) (map[string]tensorEntry, uint64, error) {
	all := map[string]tensorEntry{}
	at := uint64(0)
	for _, t := range tensors {
		if t.elements == nil {
			return nil, 0, errors.New("a tensor is the zero value: make it by Buffer")
		}

		if !utf8.ValidString(t.name) {
			return nil, 0, fmt.Errorf("the name %q of a tensor is not UTF-8", t.name)
		}
		if !isShapeOf(t.shape, t.elements.count()) {
			return nil, 0, fmt.Errorf("the tensor %q has the shape %d and %d elements", t.name, t.shape, t.elements.count())
		}

		if _, isTaken := all[t.name]; isTaken || t.name == metadataKey {
			return nil, 0, fmt.Errorf("two tensors have the name %q, or the format needs it", t.name)
		}
		end := at + uint64(bytesOf(t.elements))
		all[t.name] = tensorEntry{typeNames[t.elements.dtype()], t.shape, [2]uint64{at, end}}
		at = end
	}
	return all, at, nil
}

// isShapeOf reports whether a tensor of that many elements can have a shape.
func isShapeOf(shape []int, elements int) bool {
	n := min(elements, 1)
	for _, extent := range shape {
		if extent < 0 || n > 0 && extent > elements/n {
			return false
		}
		n *= extent
	}
	return n == elements && (n > 0 || slices.Contains(shape, 0))
}

func writeTensors(w io.Writer, tensors []Tensor, state []byte) error {
	text, err := writeHeader(tensors, state)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if err := binary.Write(out, binary.LittleEndian, uint64(len(text))); err != nil {
		return err
	}

	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := t.elements.encode(out); err != nil {
			return err
		}
	}
	return out.Flush()
}

func writeHeader(tensors []Tensor, state []byte) ([]byte, error) {
	all, _, err := entries(tensors)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write(state)
	for _, t := range tensors {
		if err := t.elements.encode(sum); err != nil {
			return nil, err
		}
	}

	header := map[string]any{metadataKey: map[string]string{
		versionKey: version, stateKey: string(state), hashKey: hex.EncodeToString(sum.Sum(nil)),
	}}
	for name, e := range all {
		header[name] = e
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...) // the data is aligned
	if len(text) > maxHeader {
		return nil, fmt.Errorf("the state and the tensors' names need %d bytes, and at most %d are possible: save what is large as a Buffer", len(text), maxHeader)
	}
	return text, nil
}

// contents are what a file has.
type contents struct {
	values   []elements // of the tensors
	tensors  []string
	state    string
	checksum string
}

// facts returns what all ranks must have read.
func (c *contents) facts() []agree.Fact {
	facts := []agree.Fact{{Name: "file", Value: "it exists"}}
	for i, t := range c.tensors {
		facts = append(facts, agree.Fact{Name: fmt.Sprint("tensor ", i), Value: t})
	}
	return append(facts, agree.Fact{Name: "state", Value: fmt.Sprintf("%.80s", c.state)}, agree.Fact{Name: "checksum", Value: c.checksum})
}

// readFile reads the tensors, which it does not change, and the state from a file.
func readFile(path string, tensors []Tensor) (c contents, err error) {
	if path == "" { // and not a file that does not exist, with which programs start anew
		return c, atomicfile.ErrNoPath
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // to open a pipe is to wait for its writer
		return c, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return c, err
	}
	return readTensors(bufio.NewReaderSize(f, 1<<20), info.Size(), tensors)
}

var errTorn = errors.New("it ends too early: it was not written to its end")

// readTensors reads a file of that many bytes.
func readTensors(r io.Reader, size int64, tensors []Tensor) (c contents, err error) {
	want, data, err := entries(tensors)
	if err != nil {
		return c, err
	}
	header, length, err := readHeader(r, size)
	if err != nil {
		return c, err
	}

	var metadata map[string]string
	if err := json.Unmarshal(header[metadataKey], &metadata); err != nil || metadata[versionKey] == "" {
		return c, errors.New("it is a safetensors file, and not one of goccl")
	}
	if v := metadata[versionKey]; v != version {
		return c, fmt.Errorf("it has version %q, and this program reads version %s", v, version)
	}

	delete(header, metadataKey)
	if err := compareHeader(header, tensors, want); err != nil {
		return c, err
	}
	switch end := length + data; {
	case uint64(size) < end:
		return c, errTorn
	case uint64(size) > end:
		return c, fmt.Errorf("%d bytes follow the tensors", uint64(size)-end)
	}

	c.state, c.checksum = metadata[stateKey], metadata[hashKey]
	sum := sha256.New()
	sum.Write([]byte(c.state))
	for _, t := range tensors {
		crc := crc32.New(castagnoli)
		values, err := t.elements.decode(r, io.MultiWriter(sum, crc))
		if err != nil {
			return c, errTorn
		}

		e := want[t.name]
		c.values = append(c.values, values)
		c.tensors = append(c.tensors, fmt.Sprintf("%q, %s %d, CRC %08x", t.name, e.DType, e.Shape, crc.Sum32()))
	}
	if hex.EncodeToString(sum.Sum(nil)) != c.checksum {
		return c, errors.New("its checksum is wrong: it was changed after it was written")
	}
	return c, nil
}

// readHeader reads the header, and returns its entries and where the data begins.
func readHeader(r io.Reader, size int64) (header map[string]json.RawMessage, end uint64, err error) {
	var length uint64
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return nil, 0, errTorn
	}
	if length > maxHeader {
		return nil, 0, errors.New("it is not a safetensors file")
	}
	if uint64(size) < 8+length {
		return nil, 0, errTorn
	}

	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, errTorn
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return nil, 0, fmt.Errorf("it is not a safetensors file, or was changed: its header is no JSON (%w)", err)
	}
	return header, 8 + length, nil
}

// compareHeader returns in what the entries of a header differ from those that the tensors have.
func compareHeader(header map[string]json.RawMessage, tensors []Tensor, want map[string]tensorEntry) error {
	for _, t := range tensors {
		var have tensorEntry
		raw, ok := header[t.name]
		if !ok {
			return fmt.Errorf("it has no tensor %q", t.name)
		}

		if err := json.Unmarshal(raw, &have); err != nil {
			return fmt.Errorf("its tensor %q is not described as in a safetensors file (%w)", t.name, err)
		}
		e := want[t.name]
		if have.DType != e.DType || !slices.Equal(have.Shape, e.Shape) || have.Offsets != e.Offsets {
			return fmt.Errorf("its tensor %q is %s %d at %d, and the model's is %s %d at %d",
				t.name, have.DType, have.Shape, have.Offsets, e.DType, e.Shape, e.Offsets)
		}
		delete(header, t.name)
	}

	if len(header) > 0 {
		return fmt.Errorf("it has a tensor %q, which the model does not have", slices.Min(slices.Collect(maps.Keys(header))))
	}
	return nil
}
