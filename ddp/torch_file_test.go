package ddp_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// fileOf returns a safetensors file with this header and these data.
func fileOf(header string, data ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

// headerOfTorch is a header as torch's writer makes it, by hand: metadata first, longer elements
// first, names sorted within a type, spaces up to a multiple of 8 bytes.
const headerOfTorch = `{"__metadata__":{"format":"pt"},` +
	`"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},` +
	`"0.bias":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},` +
	`"0.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},` +
	`"embedding":{"dtype":"BF16","shape":[1,3],"data_offsets":[40,46]},` +
	`"head":{"dtype":"F16","shape":[2],"data_offsets":[46,50]},` +
	`"none":{"dtype":"F16","shape":[4,0],"data_offsets":[50,50]},` +
	`"scales":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[50,52]},` +
	`"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[52,55]}}`

var dataOfTorch = []byte{
	0xd2, 4, 0, 0, 0, 0, 0, 0, // 1234
	0, 0, 0x20, 0x41, 0x45, 0x23, 0xc1, 0x7f, // 10, a NaN with a payload
	0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0, 0x80, 0x7f, 0, 0, 0xc0, 0x40, // 1, -2, -0, the least, an infinity, 6
	0xc0, 0x3f, 0, 0xc0, 0xc1, 0x7f, // 1.5, -2, a NaN
	0, 0x3e, 1, 0, // 1.5, the least
	0x38, 0xfe, // two bytes
	1, 0, 1,
}

// headerOfMLX is a header of the same tensors in no order, without spaces, whose data lie at odd
// addresses.
const headerOfMLX = `{"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},` +
	`"0.weight":{"shape":[2,3],"data_offsets":[3,27],"dtype":"F32"},` +
	`"none":{"data_offsets":[27,27],"shape":[4,0],"dtype":"F16"},` +
	`"head":{"dtype":"F16","shape":[2],"data_offsets":[36,40]},` +
	`"scales":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[40,42]},` +
	`"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[42,50]},` +
	`"0.bi\u0061s":{"dtype":"F32","shape":[2],"data_offsets":[28,36]},` +
	`"one":{"dtype":"U8","shape":[1,1],"data_offsets":[27,28]},` +
	`"embedding":{"dtype":"BF16","shape":[1,3],"data_offsets":[50,56]}}`

var dataOfMLX = slices.Concat(dataOfTorch[52:55], dataOfTorch[16:40], []byte{77}, dataOfTorch[8:16], dataOfTorch[46:50], dataOfTorch[50:52], dataOfTorch[:8], dataOfTorch[40:46])

// foreignFiles are files of other tools.
func foreignFiles() map[string][]byte {
	return map[string][]byte{
		"torch": fileOf(headerOfTorch+strings.Repeat(" ", -len(headerOfTorch)&7), dataOfTorch...),
		"mlx":   fileOf(headerOfMLX, dataOfMLX...),
	}
}

// tensorsIn reads a file without package ddp: the type, shape and bytes of each tensor.
func tensorsIn(file []byte) (map[string]string, error) {
	length := binary.LittleEndian.Uint64(file)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+length], &header); err != nil {
		return nil, err
	}
	delete(header, "__metadata__")
	all := map[string]string{}
	for name, raw := range header {
		var e map[string]json.RawMessage
		var dtype string
		var shape, offsets []int
		if err := errors.Join(json.Unmarshal(raw, &e), json.Unmarshal(e["dtype"], &dtype), json.Unmarshal(e["shape"], &shape), json.Unmarshal(e["data_offsets"], &offsets)); err != nil {
			return nil, err
		}
		all[name] = fmt.Sprintf("%s %d % x", dtype, shape, file[8+length:][offsets[0]:offsets[1]])
	}
	return all, nil
}

// Files of torch and of other tools load into a model, and Save writes their tensors back as they
// were, on any number of ranks.
func TestFilesOfOtherTools(t *testing.T) { everywhere(t, "files of other tools", 1, succeeded) }

func filesOfOtherTools(rank, _ int, _ *outcome) error {
	files := foreignFiles()
	for _, name := range slices.Sorted(maps.Keys(files)) { // in one order on all ranks
		if err := loadForeign(rank, files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// loadForeign loads a file into a model with other names and saves it.
func loadForeign(rank int, file []byte) (err error) {
	dir, err := os.MkdirTemp("", "ddp-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, again := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return err
	}

	weight, bias, seen := make([]float32, 6), make([]float32, 2), make([]int64, 1)
	embedding, head, mask := make([]half.BFloat16, 3), make([]half.Float16, 2), make([]bool, 3)
	r, err := ddp.New(bg, world(), []ddp.Parameter{
		ddp.Param("weight", weight, nil, 2, 3), ddp.Param("bias", bias, nil),
		ddp.Param("embedding", embedding, nil, 1, 3), ddp.Param("head", head, nil), ddp.Param("none", []half.Float16{}, nil, 4, 0),
	}, ddp.Options{BroadcastBuffers: true, Buffers: []ddp.Tensor{ddp.Buffer("seen", seen, []int{}...), ddp.Buffer("mask", mask)}})
	if err != nil {
		return err
	}
	opts := ddp.LoadOptions{AllowUnexpected: true, Names: map[string]string{"weight": "0.weight", "bias": "0.bias", "seen": "bn.num_batches_tracked"}}
	unmatched, err := r.LoadWith(bg, path, nil, opts)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(unmatched.Unexpected, func(name string) bool { return name != "scales" && name != "one" }) || unmatched.Missing != nil {
		return fmt.Errorf("unmatched: %v", unmatched)
	}
	if err := errors.Join(equal("seen", seen[0], 1234), equal("bias", bias[0], 10), equal("NaN", math.Float32bits(bias[1]), 0x7fc12345),
		equal("weight", fmt.Sprint(weight), "[1 -2 -0 1e-45 +Inf 6]"), equal("embedding", fmt.Sprint(embedding), "[1.5 -2 NaN]"),
		equal("head", fmt.Sprint(head), "[1.5 5.9604645e-08]"), equal("mask", fmt.Sprint(mask), "[true false true]")); err != nil {
		return err
	}

	c, err := ddp.ReadCheckpoint(path) // what the model does not have
	if err != nil {
		return err
	}
	var rest []ddp.Tensor
	for _, tensor := range c.Tensors {
		if slices.Contains(unmatched.Unexpected, tensor.Name()) {
			rest = append(rest, tensor)
		}
	}
	if err := errors.Join(r.Save(bg, again, nil, rest...), r.Close()); err != nil || rank != 0 {
		return err
	}
	return sameTensors(file, again, opts.Names)
}

// sameTensors compares the tensors of a file with those of another one, in which they have other
// names.
func sameTensors(file []byte, path string, names map[string]string) error {
	want, err := tensorsIn(file)
	if err != nil {
		return err
	}
	written, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	got, err := tensorsIn(written)
	if err != nil {
		return err
	}
	for name, other := range names {
		got[other] = got[name]
		delete(got, name)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("it has %v, want %v", got, want)
	}
	if !bytes.Contains(written, []byte(`"format":"pt"`)) {
		return fmt.Errorf("its header names no framework: %s", written)
	}
	return nil
}

// ReadCheckpoint gives tensors of all types and metadata, without a group.
func TestReadFilesOfOtherTools(t *testing.T) {
	for name, file := range foreignFiles() {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, file, 0o600))
		c, err := ddp.ReadCheckpoint(path)
		require.NoError(t, err)
		types := map[string]string{}
		for _, tensor := range c.Tensors {
			types[tensor.Name()] = fmt.Sprint(tensor.Type(), tensor.Shape())
			switch tensor.Name() {
			case "mask":
				values, ok := ddp.Values[bool](tensor)
				require.True(t, ok)
				require.Equal(t, []bool{true, false, true}, values)
				_, ok = ddp.Values[uint8](tensor)
				require.False(t, ok)
			case "scales":
				values, ok := ddp.Values[uint8](tensor)
				require.True(t, ok)
				require.Equal(t, []uint8{0x38, 0xfe}, values)
			case "bn.num_batches_tracked":
				values, ok := ddp.Values[int64](tensor)
				require.True(t, ok)
				require.Equal(t, []int64{1234}, values)
				_, ok = ddp.Values[float64](tensor)
				require.False(t, ok)
			}
		}
		want := map[string]string{
			"bn.num_batches_tracked": "I64[]", "0.bias": "F32[2]", "0.weight": "F32[2 3]", "embedding": "BF16[1 3]",
			"head": "F16[2]", "none": "F16[4 0]", "scales": "F8_E4M3[2]", "mask": "BOOL[3]",
		}
		if name == "torch" {
			require.Equal(t, map[string]string{"format": "pt"}, c.Metadata)
		} else {
			require.Empty(t, c.Metadata)
			want["one"] = "U8[1 1]"
		}
		require.Equal(t, want, types)
		require.ErrorContains(t, c.State(new(int)), "it has no state")
	}
}
