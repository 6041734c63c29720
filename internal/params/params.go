// Package params lists the parameters of algorithms.
//
// # Model
//
// The parameters are the fields, with a yaml tag, of a struct of the algorithm's. [Of] lists those
// of one struct, whose values the caller may set; [Defaults] lists those of a new one.
package params

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bytesize"
)

// Parameter is one parameter of an algorithm: a field, with a yaml tag, of the struct that
// ccl.Algorithm.Params returns.
type Parameter struct {
	Key   string // the field's yaml tag: the key in an entry's params
	Doc   string // the field's doc tag
	Field any    // pointer to the field: *bool, *int, *string, *time.Duration or *bytesize.Size
}

// Defaults lists the parameters of an algorithm, of which it has the name and the Params, with
// their defaults.
func Defaults(name string, params func() any) ([]Parameter, error) {
	if params == nil {
		return nil, nil
	}
	all, err := Of(params())
	if err != nil {
		return nil, fmt.Errorf("ccl: algorithm %q is faulty: %w", name, err)
	}
	return all, nil
}

// Of lists the parameters in params, which ccl.Algorithm.Params returned, in the order of the
// fields. It fails if params is not a pointer to a struct or a parameter has another type than
// Parameter.Field allows.
func Of(params any) ([]Parameter, error) {
	v := reflect.ValueOf(params)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("its Params returns a %T, and has to return a pointer to a struct", params)
	}

	var found []Parameter
	for i := range v.Elem().NumField() {
		field := v.Elem().Type().Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}

		if !field.IsExported() {
			return nil, fmt.Errorf("its parameter %s is the unexported field %s", key, field.Name)
		}
		pointer := v.Elem().Field(i).Addr().Interface()
		switch pointer.(type) {
		case *bool, *int, *string, *time.Duration, *bytesize.Size:
			found = append(found, Parameter{key, field.Tag.Get("doc"), pointer})
		default:
			return nil, fmt.Errorf("its parameter %s is a %s, and can be a bool, int, string, time.Duration or ccl.ByteSize",
				key, field.Type)
		}
	}

	return found, nil
}

// Type returns "bytes", "int", "bool", "string" or "duration".
func (p Parameter) Type() string {
	switch p.Field.(type) {
	case *bytesize.Size:
		return "bytes"
	case *time.Duration:
		return "duration"
	}
	return reflect.TypeOf(p.Field).Elem().String()
}

// String returns the parameter's value as ccl.yaml writes it.
func (p Parameter) String() string {
	if s, ok := p.Field.(*string); ok {
		return strconv.Quote(*s)
	}
	return fmt.Sprint(reflect.ValueOf(p.Field).Elem().Interface())
}
