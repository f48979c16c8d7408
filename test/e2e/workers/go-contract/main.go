// Go-contract is the service of the contract of workers, run by a worker in Go: one session of
// WorkerService, with files, that ends as the node or its own functions say.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.com/worker/tesserav1"
)

const (
	maxInlineBytes = 256 << 10
	slots          = 64
)

type input struct {
	Value  any
	Number int
	Bytes  int
	file   []byte
}

// made is a result that is a file.
type made []byte

var gathered sync.WaitGroup

var functions = map[string]func(ctx context.Context, in input) (any, error){
	"echo": func(_ context.Context, in input) (any, error) { return in.Value, nil },
	"gather": func(_ context.Context, in input) (any, error) {
		gathered.Done()
		gathered.Wait()
		return in.Number, nil
	},
	"listen": func(ctx context.Context, _ input) (any, error) { <-ctx.Done(); return nil, nil },
	"linger": func(_ context.Context, _ input) (any, error) { select {} },
	"size": func(_ context.Context, in input) (any, error) {
		sum := 0
		for _, each := range in.file {
			sum += int(each)
		}
		return map[string]int{"bytes": len(in.file), "sum": sum}, nil
	},
	"make": func(_ context.Context, in input) (any, error) {
		bytes := make(made, in.Bytes)
		for at := range bytes {
			bytes[at] = 7
		}
		return bytes, nil
	},
	"breaks": func(_ context.Context, _ input) (any, error) { return nil, errors.New("broken") },
	"exit":   func(_ context.Context, _ input) (any, error) { os.Exit(3); return nil, nil },
	"exit_soon": func(_ context.Context, _ input) (any, error) {
		time.AfterFunc(100*time.Millisecond, func() { os.Exit(3) })
		return "soon", nil
	},
	"exit_when_aborted": func(ctx context.Context, _ input) (any, error) { <-ctx.Done(); os.Exit(3); return nil, nil },
}

func main() {
	gathered.Add(slots)
	manifest, err := os.ReadFile(os.Getenv("TESSERA_MANIFEST"))
	if err != nil {
		log.Fatal(err)
	}
	connection, err := grpc.NewClient(os.Getenv("TESSERA_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	leave := make(chan os.Signal, 1)
	signal.Notify(leave, syscall.SIGTERM)
	w := &worker{
		client: tesserav1.NewWorkerServiceClient(connection),
		calls:  map[uint64]context.CancelFunc{},
		ends:   make(chan *tesserav1.WorkResult, 1000),
		leave:  leave,
	}
	if err := w.run(context.Background(), string(manifest)); err != nil && !w.leaving {
		log.Fatal(err)
	}
}

type worker struct {
	client  tesserav1.WorkerServiceClient
	session string
	stream  tesserav1.WorkerService_WorkClient
	calls   map[uint64]context.CancelFunc // Until their results are acknowledged.
	ends    chan *tesserav1.WorkResult
	leave   chan os.Signal
	leaving bool
}

func (w *worker) run(ctx context.Context, manifest string) error {
	registered, err := w.client.Register(ctx, &tesserav1.RegisterRequest{
		Deployment: "contract", ProtocolMin: 1, ProtocolMax: 1,
		Code:    &tesserav1.RegisterRequest_ManifestJson{ManifestJson: manifest},
		Runtime: &tesserav1.WorkerRuntime{Language: "go", Pid: uint32(os.Getpid())},
	})
	if err != nil {
		return err
	}
	w.session = registered.GetSession()
	if w.stream, err = w.client.Work(ctx); err != nil {
		return err
	}
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Hello{Hello: &tesserav1.Hello{Session: w.session}}})
	all := map[string]uint32{}
	for name := range functions {
		all[name] = slots
	}
	w.beat(0)
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Offer{Offer: &tesserav1.Offer{Slots: all}}})
	responses, failed := make(chan *tesserav1.WorkResponse), make(chan error, 1)
	go func() {
		response, err := w.stream.Recv()
		for ; err == nil; response, err = w.stream.Recv() {
			responses <- response
		}
		failed <- err
	}()
	heartbeats := time.NewTicker(registered.GetHeartbeatInterval().AsDuration())
	for sequence := uint64(1); ; {
		select {
		case response := <-responses:
			w.take(ctx, response)
		case end := <-w.ends:
			w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Results{Results: &tesserav1.Results{Results: []*tesserav1.WorkResult{end}}}})
		case <-heartbeats.C:
			w.beat(sequence)
			sequence++
		case <-w.leave:
			w.drain()
		case err := <-failed:
			return err
		}
	}
}

// drain takes no more calls: the node ends the session when those under way have ended.
func (w *worker) drain() {
	w.leaving = true
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Offer{Offer: &tesserav1.Offer{}}})
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Draining{Draining: &tesserav1.Draining{Reason: "it leaves"}}})
}

func (w *worker) take(ctx context.Context, response *tesserav1.WorkResponse) {
	switch message := response.GetMessage().(type) {
	case *tesserav1.WorkResponse_Assignments:
		for _, assigned := range message.Assignments.GetCalls() {
			w.begin(ctx, assigned)
		}
	case *tesserav1.WorkResponse_Abort:
		if cancel := w.calls[message.Abort.GetId()]; cancel != nil {
			cancel()
		}
	case *tesserav1.WorkResponse_ResultsAck:
		for _, id := range message.ResultsAck.GetIds() {
			delete(w.calls, id)
		}
	case *tesserav1.WorkResponse_Drain:
		w.drain()
	}
}

func (w *worker) begin(ctx context.Context, assigned *tesserav1.Assignment) {
	id := assigned.GetId()
	ctx, cancel := context.WithCancel(ctx)
	w.calls[id] = cancel
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Accepted{Accepted: &tesserav1.Accepted{Ids: []uint64{id}}}})
	go func() { w.ends <- w.call(ctx, assigned) }()
}

// call runs a function to its end. Blobs are moved in calls of their own, beside the stream.
func (w *worker) call(ctx context.Context, assigned *tesserav1.Assignment) *tesserav1.WorkResult {
	end := &tesserav1.WorkResult{Id: assigned.GetId()}
	var in input
	// A file is its index in the JSON text, which no field here has.
	err := json.Unmarshal([]byte(assigned.GetJson()), &in)
	if err == nil && len(assigned.GetFiles()) > 0 {
		in.file, err = w.read(ctx, assigned)
	}
	var out any
	if err == nil {
		out, err = functions[assigned.GetEndpoint()](ctx, in)
	}
	bytes, isFile := out.(made)
	switch {
	case ctx.Err() != nil:
		end.End = &tesserav1.WorkResult_Aborted{Aborted: &tesserav1.WorkAborted{Reason: "cancelled"}}
	case err != nil:
		end.End = &tesserav1.WorkResult_Failure{Failure: &tesserav1.WorkFailure{Code: "internal", Reason: "CALL_FAILED", Message: err.Error()}}
	case isFile && len(bytes) <= maxInlineBytes:
		end.End = &tesserav1.WorkResult_File{File: &tesserav1.FileResult{ContentType: "a/b", Filename: "made.bin", Content: &tesserav1.FileResult_Data{Data: bytes}}}
	case isFile:
		blob, err := w.write(ctx, assigned.GetId(), bytes)
		if err != nil {
			end.End = &tesserav1.WorkResult_Displaced{Displaced: err.Error()}
			return end
		}
		end.End = &tesserav1.WorkResult_File{File: &tesserav1.FileResult{ContentType: "a/b", Filename: "made.bin", Content: &tesserav1.FileResult_BlobId{BlobId: blob}}}
	default:
		text, _ := json.Marshal(out)
		end.End = &tesserav1.WorkResult_Json{Json: string(text)}
	}
	return end
}

func (w *worker) read(ctx context.Context, assigned *tesserav1.Assignment) ([]byte, error) {
	if data, isInline := assigned.GetFiles()[0].GetContent().(*tesserav1.FileArgument_Data); isInline {
		return data.Data, nil
	}
	blob, err := w.client.ReadBlob(ctx, &tesserav1.ReadBlobRequest{
		Session: w.session,
		Source:  &tesserav1.ReadBlobRequest_Argument{Argument: &tesserav1.ArgumentFile{Id: assigned.GetId()}},
	})
	if err != nil {
		return nil, err
	}
	var all []byte
	for {
		part, err := blob.Recv()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, part.GetData()...)
	}
}

func (w *worker) write(ctx context.Context, id uint64, bytes []byte) (string, error) {
	blob, err := w.client.WriteBlob(ctx)
	if err != nil {
		return "", err
	}
	header := &tesserav1.BlobHeader{Session: w.session, Id: id}
	for at := 0; at < len(bytes); at += maxInlineBytes {
		part := bytes[at:min(at+maxInlineBytes, len(bytes))]
		if err := blob.Send(&tesserav1.WriteBlobRequest{Header: header, Data: part}); err != nil {
			return "", err
		}
		header = nil
	}
	stored, err := blob.CloseAndRecv()
	return stored.GetBlobId(), err
}

// beat says that the worker lives, and what it uses.
func (w *worker) beat(sequence uint64) {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	w.send(&tesserav1.WorkRequest{Message: &tesserav1.WorkRequest_Heartbeat{Heartbeat: &tesserav1.Heartbeat{
		Sequence: sequence, MemoryBytes: uint64(usage.Maxrss) << 10, CpuTime: durationpb.New(cpu),
	}}})
}

// send ignores a broken stream, whose reader learns of it.
func (w *worker) send(request *tesserav1.WorkRequest) { _ = w.stream.Send(request) }
