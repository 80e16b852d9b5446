// A runtime without any SDK: two sockets, a little MessagePack and two tasks.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

var comm, logs net.Conn
var next = 0

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var err error
	for _, argument := range os.Args[1:] {
		if address, found := strings.CutPrefix(argument, "--comm="); found {
			comm, err = net.Dial("tcp", address)
			check(err)
		}
		if address, found := strings.CutPrefix(argument, "--logs="); found {
			logs, err = net.Dial("tcp", address)
			check(err)
		}
	}
	ti := frame()[1].(map[string]any)["ti"].(map[string]any)
	fmt.Println("printed by go")
	attempt := ti["try_number"].(int64)
	now := time.Now().UTC().Format(time.RFC3339)
	if ti["task_id"] == "flaky" && attempt == 1 {
		ask("RetryTask", map[string]any{"state": "up_for_retry", "end_date": now,
			"retry_reason": "the first try never works"})
		return
	}
	var value any = attempt
	where := map[string]any{"dag_id": ti["dag_id"], "run_id": ti["run_id"], "key": "return_value"}
	if ti["task_id"] == "double" {
		fmt.Fprintln(logs, `{"event":"doubling in go","level":"info","logger":"main"}`)
		where["task_id"] = "numbers"
		doubled := []any{}
		for _, n := range ask("GetXCom", where)[1].(map[string]any)["value"].([]any) {
			doubled = append(doubled, 2*n.(int64))
		}
		value = doubled
	}
	where["task_id"], where["value"] = ti["task_id"], value
	ask("SetXCom", where)
	ask("SucceedTask", map[string]any{"state": "success", "end_date": now})
}

func ask(kind string, body map[string]any) []any {
	body["type"] = kind
	next++
	content := encode(nil, []any{int64(next), body})
	_, err := comm.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...))
	check(err)
	answer := frame()
	if len(answer) > 2 && answer[2] != nil {
		check(fmt.Errorf("%s: %v", kind, answer[2]))
	}
	return answer
}

func take(n uint64) []byte {
	data := make([]byte, n)
	_, err := io.ReadFull(comm, data)
	check(err)
	return data
}

func number(size uint64) uint64 {
	padded := append(make([]byte, 8-size), take(size)...)
	return binary.BigEndian.Uint64(padded)
}

func frame() []any {
	number(4)
	return decode().([]any)
}

func encode(to []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(to, 0xc0)
	case int64:
		return binary.BigEndian.AppendUint64(append(to, 0xd3), uint64(v))
	case string:
		return append(binary.BigEndian.AppendUint32(append(to, 0xdb), uint32(len(v))), v...)
	case []any:
		to = binary.BigEndian.AppendUint32(append(to, 0xdd), uint32(len(v)))
		for _, item := range v {
			to = encode(to, item)
		}
		return to
	case map[string]any:
		to = binary.BigEndian.AppendUint32(append(to, 0xdf), uint32(len(v)))
		for key, item := range v {
			to = encode(encode(to, key), item)
		}
		return to
	}
	check(fmt.Errorf("cannot encode %T", value))
	return nil
}

func decode() any {
	tag := take(1)[0]
	switch {
	case tag < 0x80:
		return int64(tag)
	case tag < 0x90:
		return mapping(uint64(tag & 15))
	case tag < 0xa0:
		return list(uint64(tag & 15))
	case tag < 0xc0:
		return string(take(uint64(tag & 31)))
	case tag >= 0xe0:
		return int64(int8(tag))
	}
	switch tag {
	case 0xc0:
		return nil
	case 0xc2, 0xc3:
		return tag == 0xc3
	case 0xc7:
		return take(number(1) + 1)
	case 0xcb:
		return number(8)
	case 0xcc, 0xcd, 0xce, 0xcf:
		return int64(number(1 << (tag - 0xcc)))
	case 0xd0:
		return int64(int8(number(1)))
	case 0xd1:
		return int64(int16(number(2)))
	case 0xd2:
		return int64(int32(number(4)))
	case 0xd3:
		return int64(number(8))
	case 0xd6:
		return take(5)
	case 0xd7:
		return take(9)
	case 0xd9, 0xda, 0xdb:
		return string(take(number(1 << (tag - 0xd9))))
	case 0xdc, 0xdd:
		return list(number(2 << (tag - 0xdc)))
	case 0xde, 0xdf:
		return mapping(number(2 << (tag - 0xde)))
	}
	check(fmt.Errorf("unexpected tag %x", tag))
	return nil
}

func list(n uint64) []any {
	found := []any{}
	for ; n > 0; n-- {
		found = append(found, decode())
	}
	return found
}

func mapping(n uint64) map[string]any {
	found := map[string]any{}
	for ; n > 0; n-- {
		key := decode().(string)
		found[key] = decode()
	}
	return found
}
