package ddp_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/test/golden"
)

// untrueFiles are files whose headers say what is not so, or what two readers read in two ways.
func untrueFiles() map[string][]byte {
	w := func(dtype, shape, offsets string, bytes int) []byte {
		return fileOf(fmt.Sprintf(`{"w":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets), make([]byte, bytes)...)
	}
	pair := func(a, b string, bytes int) []byte {
		return fileOf(fmt.Sprintf(`{"a":{"dtype":"U8","shape":[4],"data_offsets":%s},"b":{"dtype":"U8","shape":[4],"data_offsets":%s}}`, a, b), make([]byte, bytes)...)
	}
	return map[string][]byte{
		"overlap":              pair("[0,4]", "[3,7]", 7),
		"same data":            pair("[0,4]", "[0,4]", 4),
		"gap":                  pair("[0,4]", "[5,9]", 9),
		"gap at the beginning": pair("[1,5]", "[5,9]", 9),
		"beyond the end":       pair("[0,4]", "[4,8]", 7),
		"longer":               pair("[0,4]", "[4,8]", 9),
		"backwards":            fileOf(`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[8,4]},"c":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}}`, make([]byte, 12)...),
		"backwards at the end": fileOf(`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U16","shape":[9223372036854775806],"data_offsets":[8,4]}}`, make([]byte, 4)...),
		"shape is smaller":     w(`"F32"`, "[2]", "[0,12]", 12),
		"shape is larger":      w(`"F32"`, "[4]", "[0,12]", 12),
		"no whole elements":    w(`"F32"`, "[2]", "[0,11]", 11),
		"negative":             w(`"U8"`, "[-2,-2]", "[0,4]", 4),
		"overflow":             w(`"U8"`, "[4294967296,4294967296]", "[0,0]", 0),
		"overflow to a value":  w(`"U8"`, "[9223372036854775807,2,2]", "[0,4]", 4),
		"shape of 64 bits":     w(`"U8"`, "[18446744073709551615]", "[0,1]", 1),
		"offsets of 64 bits":   w(`"F64"`, "[2]", "[0,18446744073709551600]", 16),
		"empty of elements":    w(`"U8"`, "[0]", "[0,4]", 4),
		"type":                 w(`"F4"`, "[4]", "[0,4]", 4),
		"bool of 2":            fileOf(`{"w":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}`, 1, 2, 0),
		"type in lower case":   w(`"f32"`, "[1]", "[0,4]", 4),
		"type null":            w("null", "[4]", "[0,4]", 4),
		"type of a number":     w("32", "[4]", "[0,4]", 4),
		"shape null":           w(`"U8"`, "null", "[0,1]", 1),
		"extent null":          w(`"U8"`, "[null]", "[0,0]", 0),
		"extent of a float":    w(`"U8"`, "[4.0]", "[0,4]", 4),
		"extent of a string":   w(`"U8"`, `["4"]`, "[0,4]", 4),
		"one offset":           w(`"U8"`, "[0]", "[0]", 0),
		"three offsets":        w(`"U8"`, "[4]", "[0,4,8]", 4),
		"offset null":          w(`"U8"`, "[4]", "[null,4]", 4),
		"no shape":             fileOf(`{"w":{"dtype":"U8","data_offsets":[0,1]}}`, 1),
		"no type":              fileOf(`{"w":{"shape":[1],"data_offsets":[0,1]}}`, 1),
		"no offsets":           fileOf(`{"w":{"dtype":"U8","shape":[0]}}`),
		"case of keys":         fileOf(`{"w":{"DType":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
		"name twice":           fileOf(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, 1),
		"name twice, escaped":  fileOf(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0077":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2),
		"key twice":            fileOf(`{"w":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, 1),
		"metadata twice":       fileOf(`{"__metadata__":{"a":"1","a":"2"}}`),
		"metadata of numbers":  fileOf(`{"__metadata__":{"a":1}}`),
		"metadata of null":     fileOf(`{"__metadata__":{"a":null}}`),
		"metadata of a list":   fileOf(`{"__metadata__":["a"]}`),
		"entry of a list":      fileOf(`{"w":[1]}`),
		"entry null":           fileOf(`{"w":null}`),
		"list":                 fileOf(`[]`),
		"null":                 fileOf(`null`),
		"no header":            fileOf(``),
		"two objects":          fileOf(`{} {}`),
		"zeros follow":         fileOf("{}\x00\x00"),
		"comma":                fileOf(`{"__metadata__":{},}`),
		"not closed":           fileOf(`{"__metadata__":{}`),
		"closed otherwise":     fileOf(`{"__metadata__":{}]`),
		"number as a name":     fileOf(`{1:{}}`),
		"not UTF-8":            fileOf("{\"w\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1),
		"header of 64 bits":    binary.LittleEndian.AppendUint64(nil, math.MaxUint64),
		"header is longer":     binary.LittleEndian.AppendUint64(nil, 99_999_999),
		"seven bytes":          make([]byte, 7),
		"nothing":              nil,
	}
}

// A file whose header says what is not so is refused, with what is not.
func TestUntrueFiles(t *testing.T) {
	texts := golden.Errors(t)
	dir := t.TempDir()
	for name, file := range untrueFiles() {
		path := filepath.Join(dir, "x")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		_, err := ddp.ReadCheckpoint(path)
		var refused *ddp.CheckpointError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, path, refused.Path)
		texts.Add(name, err)
	}
	_, err := ddp.ReadCheckpoint(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = ddp.ReadCheckpoint("")
	require.ErrorContains(t, err, "the path of the file is empty")
}

// What the format allows is read: no tensors, no metadata, other keys, spaces.
func TestAllowedFiles(t *testing.T) {
	for name, file := range map[string][]byte{
		"no tensors":      fileOf(`{}      `),
		"no metadata":     fileOf(`{"__metadata__":null}`),
		"other keys":      fileOf(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"stride":[1],"name":null}}`, 1),
		"spaces":          fileOf("{ \"w\" : {\n\"dtype\":\"U8\",\t\"shape\":[ 1 ],\"data_offsets\":[0,1]}}\r\n ", 1),
		"empty beside":    fileOf(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"e":{"dtype":"F64","shape":[3,0],"data_offsets":[0,0]},"f":{"dtype":"F64","shape":[0],"data_offsets":[1,1]}}`, 1),
		"a name of blank": fileOf(`{"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1),
	} {
		_, err := ddp.ReadBytes(file)
		require.NoError(t, err, name)
	}
}

// FuzzFiles reads files: what is accepted is a true description of all data, and is written and
// read again as it was.
func FuzzFiles(f *testing.F) {
	for _, file := range foreignFiles() {
		f.Add(file)
	}
	for _, file := range untrueFiles() {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		tensors, err := ddp.ReadBytes(file)
		if err != nil {
			return
		}
		length := binary.LittleEndian.Uint64(file)
		require.True(t, json.Valid(file[8:8+length]))
		described, err := tensorsIn(file)
		require.NoError(t, err)
		require.Len(t, described, len(tensors))
		covered := 0
		for _, tensor := range tensors {
			text := described[tensor.Name()]
			require.True(t, strings.HasPrefix(text, fmt.Sprint(tensor.Type(), " ", tensor.Shape())), text)
			count := strings.Count(text[strings.Index(text, "]")+1:], " ")
			if strings.HasSuffix(text, " ") {
				count = 0
			}
			covered += count
		}
		require.Equal(t, len(file)-8-int(length), covered)

		written, err := ddp.WriteBytes(tensors)
		if err != nil {
			require.ErrorContains(t, err, "or the format needs it")
			return
		}
		again, err := tensorsIn(written)
		require.NoError(t, err)
		require.Equal(t, described, again)
		_, err = ddp.ReadBytes(written)
		require.NoError(t, err)
	})
}

// A name, a type or a shape of a file that is long does not make the error long.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	shape := strings.Repeat("1,", 1<<18) + "1"
	entry := `{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`
	for name, file := range map[string][]byte{
		"no data":   fileOf(fmt.Sprintf(`{%q:%s}`, long, entry)),
		"no entry":  fileOf(fmt.Sprintf(`{%q:{}}`, long)),
		"twice":     fileOf(fmt.Sprintf(`{%q:%s,%[1]q:%[2]s}`, long, entry), 1),
		"overlap":   fileOf(fmt.Sprintf(`{%q:%s,"w":%[2]s}`, long, entry), 1),
		"type":      fileOf(fmt.Sprintf(`{"w":{"dtype":%q,"shape":[1],"data_offsets":[0,1]}}`, long), 1),
		"shape":     fileOf(fmt.Sprintf(`{"w":{"dtype":"U16","shape":[%s],"data_offsets":[0,1]}}`, shape), 1),
		"version":   fileOf(fmt.Sprintf(`{"__metadata__":{"goccl.checkpoint":%q}}`, long)),
		"a bool":    fileOf(fmt.Sprintf(`{%q:{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}`, long), 2),
		"the model": fileOf(fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%s],"data_offsets":[0,1]},%q:{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, shape, long), 1),
	} {
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		read, err := ddp.ReadCheckpoint(path)
		if err == nil {
			_, err = read.Load(ddp.LoadOptions{}, ddp.Buffer("w", make([]uint16, 1)))
		}
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 1000, name)
	}
}
