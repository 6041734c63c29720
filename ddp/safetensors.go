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
	"math"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/internal/atomicfile"
)

// A safetensors file (https://huggingface.co/docs/safetensors) is the length of the header, 8 bytes, the
// header, JSON, and the tensors, little-endian, without gaps.

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

// typeName returns the format's name of a type.
func typeName[T Float]() string {
	switch any(*new(T)).(type) {
	case float32:
		return "F32"
	case float64:
		return "F64"
	case half.Float16:
		return "F16"
	default:
		return "BF16"
	}
}

// entries returns the header's tensors, in the order of the data.
func entries[T Float](tensors []Parameter[T]) (map[string]tensorEntry, uint64, error) {
	all := map[string]tensorEntry{}
	at := uint64(0)
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int{len(t.Data)}
		}
		if !utf8.ValidString(t.Name) {
			return nil, 0, fmt.Errorf("the name %q of a tensor is not UTF-8", t.Name)
		}
		if !isShapeOf(shape, len(t.Data)) {
			return nil, 0, fmt.Errorf("the tensor %q has the shape %d and %d elements", t.Name, shape, len(t.Data))
		}
		if _, twice := all[t.Name]; twice || t.Name == metadataKey {
			return nil, 0, fmt.Errorf("two tensors have the name %q, or the format needs it", t.Name)
		}
		end := at + uint64(len(t.Data)*ccl.DTypeOf[T]().Size())
		all[t.Name] = tensorEntry{typeName[T](), shape, [2]uint64{at, end}}
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

// writeTensors writes a file.
func writeTensors[T Float](w io.Writer, tensors []Parameter[T], state []byte) error {
	all, _, err := entries(tensors)
	if err != nil {
		return err
	}
	sum := sha256.New()
	sum.Write(state)
	for _, t := range tensors {
		if err := encode(sum, t.Data); err != nil {
			return err
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
		return err
	}
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...) // the data is aligned
	if len(text) > maxHeader {
		return fmt.Errorf("the state and the tensors' names need %d bytes, and at most %d are possible: save what is large as a Parameter", len(text), maxHeader)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if err := binary.Write(out, binary.LittleEndian, uint64(len(text))); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := encode(out, t.Data); err != nil {
			return err
		}
	}
	return out.Flush()
}

// contents are what a file has.
type contents[T Float] struct {
	values   [][]T // of the tensors
	tensors  []string
	state    string
	checksum string
}

// readFile reads the tensors, which it does not change, and the state from a file.
func readFile[T Float](path string, tensors []Parameter[T]) (contents[T], error) {
	if path == "" { // and not a file that does not exist, with which programs start anew
		return contents[T]{}, atomicfile.ErrNoPath
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // to open a pipe is to wait for its writer
		return contents[T]{}, fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return contents[T]{}, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return contents[T]{}, err
	}
	return readTensors(bufio.NewReaderSize(f, 1<<20), info.Size(), tensors)
}

var errTorn = errors.New("it ends too early: it was not written to its end")

// readTensors reads a file of that many bytes.
func readTensors[T Float](r io.Reader, size int64, tensors []Parameter[T]) (c contents[T], err error) {
	want, data, err := entries(tensors)
	if err != nil {
		return c, err
	}
	var length uint64
	if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
		return c, errTorn
	}
	if length > maxHeader {
		return c, errors.New("it is not a safetensors file")
	}
	if uint64(size) < 8+length {
		return c, errTorn
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return c, errTorn
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(text, &header); err != nil {
		return c, fmt.Errorf("it is not a safetensors file: %w", err)
	}
	var metadata map[string]string
	if err := json.Unmarshal(header[metadataKey], &metadata); err != nil || metadata[versionKey] == "" {
		return c, errors.New("it is a safetensors file, and not one of goccl")
	}
	if v := metadata[versionKey]; v != version {
		return c, fmt.Errorf("it has version %q, and this program reads version %s", v, version)
	}
	delete(header, metadataKey)
	for _, t := range tensors {
		var have tensorEntry
		raw, ok := header[t.Name]
		if !ok {
			return c, fmt.Errorf("it has no tensor %q", t.Name)
		}
		if err := json.Unmarshal(raw, &have); err != nil {
			return c, fmt.Errorf("its tensor %q: %w", t.Name, err)
		}
		e := want[t.Name]
		if have.DType != e.DType || !slices.Equal(have.Shape, e.Shape) || have.Offsets != e.Offsets {
			return c, fmt.Errorf("its tensor %q is %s %d at %d, and the model's is %s %d at %d",
				t.Name, have.DType, have.Shape, have.Offsets, e.DType, e.Shape, e.Offsets)
		}
		delete(header, t.Name)
	}
	if len(header) > 0 {
		return c, fmt.Errorf("it has a tensor %q, which the model does not have", slices.Min(slices.Collect(maps.Keys(header))))
	}
	switch end := 8 + length + data; {
	case uint64(size) < end:
		return c, errTorn
	case uint64(size) > end:
		return c, fmt.Errorf("%d bytes follow the tensors", uint64(size)-end)
	}
	c.state, c.checksum = metadata[stateKey], metadata[hashKey]
	sum := sha256.New()
	sum.Write([]byte(c.state))
	for _, t := range tensors {
		values, crc := make([]T, len(t.Data)), crc32.New(crc32.MakeTable(crc32.Castagnoli))
		if err := decode(r, io.MultiWriter(sum, crc), values); err != nil {
			return c, errTorn
		}
		e := want[t.Name]
		c.values = append(c.values, values)
		c.tensors = append(c.tensors, fmt.Sprintf("%q, %s %d, CRC %08x", t.Name, e.DType, e.Shape, crc.Sum32()))
	}
	if hex.EncodeToString(sum.Sum(nil)) != c.checksum {
		return c, errors.New("its checksum is wrong: it was changed after it was written")
	}
	return c, nil
}

// piece is the number of elements that are converted at a time.
const piece = 1 << 14

// encode writes the elements, little-endian.
func encode[T Float](w io.Writer, data []T) error {
	memory := make([]byte, 0, 8*min(piece, len(data)))
	for part := range slices.Chunk(data, piece) {
		memory = memory[:0]
		switch p := any(part).(type) {
		case []float32:
			for _, x := range p {
				memory = binary.LittleEndian.AppendUint32(memory, math.Float32bits(x))
			}
		case []float64:
			for _, x := range p {
				memory = binary.LittleEndian.AppendUint64(memory, math.Float64bits(x))
			}
		case []half.Float16:
			for _, x := range p {
				memory = binary.LittleEndian.AppendUint16(memory, x.Bits())
			}
		case []half.BFloat16:
			for _, x := range p {
				memory = binary.LittleEndian.AppendUint16(memory, x.Bits())
			}
		}
		if _, err := w.Write(memory); err != nil {
			return err
		}
	}
	return nil
}

// decode reads elements, little-endian, and writes their bytes to sums.
func decode[T Float](r io.Reader, sums io.Writer, data []T) error {
	size := ccl.DTypeOf[T]().Size()
	memory := make([]byte, size*min(piece, len(data)))
	for part := range slices.Chunk(data, piece) {
		b := memory[:size*len(part)]
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		_, _ = sums.Write(b) // hashes take everything
		switch p := any(part).(type) {
		case []float32:
			for i := range p {
				p[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
		case []float64:
			for i := range p {
				p[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			}
		case []half.Float16:
			for i := range p {
				p[i] = half.Float16FromBits(binary.LittleEndian.Uint16(b[2*i:]))
			}
		case []half.BFloat16:
			for i := range p {
				p[i] = half.BFloat16FromBits(binary.LittleEndian.Uint16(b[2*i:]))
			}
		}
	}
	return nil
}
