// A character's voice in Unity (2021 and later): a gateway's socket -> AudioSource and blend shapes, on one clock.
// Put it on a GameObject with an AudioSource; `Face` takes a mesh with blend shapes named viseme_sil, viseme_PP ... (as
// Ready Player Me's are). Browsers (WebGL) have no ClientWebSocket: there NativeWebSocket's OnMessage feeds Take and TakeAudio.
using System;
using System.Collections.Concurrent;
using System.IO;
using System.Collections.Generic;
using System.Net.WebSockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;

[RequireComponent(typeof(AudioSource))]
public class VoicewireVoice : MonoBehaviour
{
    const int Rate = 24000;
    /// Lips move before the sound.
    const double LeadMs = 60;
    /// Samples that wait to be heard; the gateway sends 300 ms ahead. What is more than this is dropped.
    const int MaxSamples = Rate * 5;

    public string Gateway = "ws://127.0.0.1:8080";
    public string Session = "unity";
    public SkinnedMeshRenderer Face;
    public event Action<string, string> UtteranceDone;

    [Serializable] class Audio { public double start_ms; }
    /// Every field that is read of any event; JsonUtility leaves those out that are not there.
    [Serializable]
    class Message
    {
        public string type;
        public Audio audio;
        public double at_ms;
        public double ms;
        public double next_ms = -1;
        public string[] visemes;
        public double[] vtimes_ms;
        public double[] vdurations_ms;
        public string utterance_id;
        public string outcome;
        public string code;
        public string message;
    }
    [Serializable] class Speak { public string type = "speak"; public string text; }
    [Serializable] class Interrupt { public string type = "interrupt"; }
    struct Shape { public string Name; public double StartMs, EndMs; }

    readonly ConcurrentQueue<(string json, byte[] audio)> inbox = new();
    readonly Queue<float> samples = new();
    readonly List<Shape> shapes = new();
    readonly CancellationTokenSource closing = new();
    readonly SemaphoreSlim sending = new(1);
    ClientWebSocket socket;
    AudioSource source;
    /// Timeline position behind the last sample that came, ms.
    double receivedToMs;
    double latencyMs;
    string shown = "sil";

    async void Start()
    {
        source = GetComponent<AudioSource>();
        source.clip = AudioClip.Create("voice", Rate, 1, Rate, true, Read);
        source.loop = true;
        source.Play();
        AudioSettings.GetDSPBufferSize(out var length, out var count);
        latencyMs = 1000.0 * length * count / AudioSettings.outputSampleRate;
        try { await Receive(); }
        catch (OperationCanceledException) { /* the object was destroyed */ }
        catch (WebSocketException error) { Debug.LogWarning($"voicewire: {error.Message}"); }
    }

    void OnDestroy() { closing.Cancel(); socket?.Dispose(); }

    public Task Say(string text) => Send(JsonUtility.ToJson(new Speak { text = text }));
    public Task Stop() => Send(JsonUtility.ToJson(new Interrupt()));

    async Task Send(string json)
    {
        await sending.WaitAsync(closing.Token);
        try
        {
            var bytes = new ArraySegment<byte>(Encoding.UTF8.GetBytes(json));
            await socket.SendAsync(bytes, WebSocketMessageType.Text, true, closing.Token);
        }
        finally { sending.Release(); }
    }

    async Task Receive()
    {
        socket = new ClientWebSocket();
        var url = $"{Gateway}/live/{Session}?format=pcm_24000&events=visemes";
        await socket.ConnectAsync(new Uri(url), closing.Token);
        var part = new byte[16384];
        var whole = new MemoryStream();
        while (socket.State == WebSocketState.Open)
        {
            whole.SetLength(0);
            WebSocketReceiveResult result;
            do
            {
                result = await socket.ReceiveAsync(new ArraySegment<byte>(part), closing.Token);
                whole.Write(part, 0, result.Count);
            } while (!result.EndOfMessage);
            if (result.MessageType == WebSocketMessageType.Close) return;
            if (result.MessageType == WebSocketMessageType.Binary) inbox.Enqueue((null, whole.ToArray()));
            else inbox.Enqueue((Encoding.UTF8.GetString(whole.ToArray()), null));
        }
    }

    void Update()
    {
        while (inbox.TryDequeue(out var item))
        {
            if (item.audio != null) TakeAudio(item.audio);
            else Take(JsonUtility.FromJson<Message>(item.json));
        }
        MoveMouth();
    }

    void TakeAudio(byte[] bytes)
    {
        lock (samples)
        {
            for (var i = 0; i + 1 < bytes.Length && samples.Count < MaxSamples; i += 2)
                samples.Enqueue((short)(bytes[i] | bytes[i + 1] << 8) / 32768f);
        }
        receivedToMs += bytes.Length / 2 * 1000.0 / Rate;
    }

    /// On the audio thread.
    void Read(float[] data)
    {
        lock (samples)
        {
            for (var i = 0; i < data.Length; i++) data[i] = samples.Count > 0 ? samples.Dequeue() : 0f;
        }
    }

    void Take(Message message)
    {
        switch (message.type)
        {
            case "hello": OnHello(message); break;
            case "viseme": OnViseme(message); break;
            case "gap": OnGap(message); break;
            case "interrupted": OnInterrupted(message); break;
            case "utterance.done": OnUtteranceDone(message); break;
            case "error": OnError(message); break;
        }
    }

    void OnHello(Message message) { receivedToMs = message.audio.start_ms; }

    void OnViseme(Message message)
    {
        for (var i = 0; i < message.visemes.Length; i++)
        {
            var startMs = message.vtimes_ms[i];
            shapes.Add(new Shape { Name = message.visemes[i], StartMs = startMs, EndMs = startMs + message.vdurations_ms[i] });
        }
    }

    void OnGap(Message message) { receivedToMs += message.ms; }

    void OnInterrupted(Message message)
    {
        lock (samples) samples.Clear();
        shapes.RemoveAll(shape => shape.StartMs >= message.at_ms);
        if (message.next_ms > 0) receivedToMs = message.next_ms;
    }

    void OnUtteranceDone(Message message) { UtteranceDone?.Invoke(message.utterance_id, message.outcome); }

    void OnError(Message message) { Debug.LogWarning($"voicewire: {message.code}: {message.message}"); }

    void MoveMouth()
    {
        double waitingMs;
        lock (samples) waitingMs = samples.Count * 1000.0 / Rate;
        var atMs = receivedToMs - waitingMs - latencyMs + LeadMs;
        shapes.RemoveAll(shape => shape.EndMs < atMs - 1000);
        var wanted = shapes.Find(shape => shape.StartMs <= atMs && atMs < shape.EndMs).Name ?? "sil";
        if (wanted != shown && Face != null)
        {
            SetWeight(shown, 0);
            SetWeight(wanted, 100);
        }
        shown = wanted;
    }

    void SetWeight(string viseme, float weight)
    {
        var index = Face.sharedMesh.GetBlendShapeIndex("viseme_" + viseme);
        if (index >= 0) Face.SetBlendShapeWeight(index, weight);
    }
}
