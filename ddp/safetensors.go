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
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
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
	formatKey   = "format"
	format      = "pt" // of torch: Hugging Face's transformers refuse a file that names no framework
	versionKey  = "goccl.checkpoint"
	stateKey    = "goccl.state"
	hashKey     = "goccl.sha256" // of the state and the data
	shardsKey   = "goccl.logical_shards"
	version     = "1"
)

// maxHeader is the format's limit.
const maxHeader = 100_000_000

// entries returns the header's tensors, whose data lie in this order.
func entries(tensors []Tensor) (map[string]tensorEntry, error) {
	all := map[string]tensorEntry{}
	at := uint64(0)
	for _, t := range tensors {
		if t.elements == nil {
			return nil, errors.New("a tensor is the zero value: make it by Buffer")
		}

		if !utf8.ValidString(t.name) {
			return nil, fmt.Errorf("the name %q of a tensor is not UTF-8", t.name)
		}
		if !isShapeOf(t.shape, t.elements.count()) {
			return nil, fmt.Errorf("the tensor %q has the shape %d and %d elements", t.name, t.shape, t.elements.count())
		}

		if _, isTaken := all[t.name]; isTaken || t.name == metadataKey {
			return nil, fmt.Errorf("two tensors have the name %q, or the format needs it", t.name)
		}
		end := at + uint64(bytesOf(t.elements))
		all[t.name] = tensorEntry{t.elements.typeName(), t.shape, [2]uint64{at, end}}
		at = end
	}
	return all, nil
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

func writeTensors(w io.Writer, tensors []Tensor, state []byte, shards int) error {
	text, err := writeHeader(tensors, state, shards)
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

func writeHeader(tensors []Tensor, state []byte, shards int) ([]byte, error) {
	all, err := entries(tensors)
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

	metadata := map[string]string{
		formatKey: format, versionKey: version, stateKey: string(state), hashKey: hex.EncodeToString(sum.Sum(nil)),
	}
	if shards > 0 {
		metadata[shardsKey] = strconv.Itoa(shards)
	}
	header := map[string]any{metadataKey: metadata}
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
