"""Writes inputs for the real models: a recording of speech, bytes of files, a melody, an EEG, sentences,
rendered text.

Noise would not do: it leaves classifiers near their bias, gates shut and detectors silent, and a
wrong result then differs from a right one by less than the tolerance.

The files needed are beckett.wav and magika_config.json (of models.json; `cargo xtask fetch-models`
gets them) and LICENSE-MIT (of this repository). OUT gets one npz file per case, with an array for
each input of the model, and cases.json:

    {"cases": [{"name", "model", "inputs", "per_step": [NAME…], "states": {INPUT: OUTPUT…}, "large"}]}

`model` is a name of models.json. `per_step` and `states` are those of onnxruntime_run.py: the first
axis of the arrays in `per_step` counts calls of the model, and `states` says which output of one
call is which input of the next. `large` cases run on demand: their model is a large download, or they
take long. A model with several cases is given several sizes.

Usage: model_inputs.py --file NAME=PATH... OUT
"""

import argparse
import json
import math
import pathlib
import wave

import numpy
from PIL import Image, ImageDraw, ImageFont
from scipy import signal

# The widths that silero-vad was trained with: new samples of a call, and old ones before them.
SILERO_CHUNK = {16000: 512, 8000: 256}
SILERO_CONTEXT = {16000: 64, 8000: 32}

# basic-pitch: mono at 22,050 Hz in windows of 2 s less one hop of 256.
PITCH_RATE = 22050
PITCH_WINDOW = 43844

# Of brainmaze-eeg-models: 1 s segments in steps of 0.5 s, frequencies of 0 to 99 Hz; the spindle
# detector sees 30 s at 250 Hz and 15 wavelet scales.
EEG_RATE = 250
EEG_FREQUENCIES = 100
SPINDLE_SECONDS = 30
SPINDLE_SCALES = numpy.geomspace(135, 270, num=15)

# "A cat sat on the warm stone wall." and "The compiler checks every shape before it runs.", as
# minilm_tokenizer.json encodes them (tokenizers 0.23.3), [CLS] first and [SEP] last. The second
# stands in the batch with its last three tokens masked, to put the attention mask to work.
SENTENCES = [
    [101, 1037, 4937, 2938, 2006, 1996, 4010, 2962, 2813, 1012, 102],
    [101, 1996, 21624, 14148, 2296, 4338, 2077, 2009, 3216, 1012, 102],
]
MASKED_TOKENS = [0, 3]

# What the optical character recognition reads, in the font that comes with Pillow.
TEXT = ["The compiler checks", "every shape before it runs,", "and then 0123456789 more."]

# PP-OCR's detector: means and deviations of ImageNet's channels. Its other two networks, and ddddocr's,
# take [-1, 1].
IMAGENET_MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)
IMAGENET_DEVIATION = numpy.array([0.229, 0.224, 0.225], numpy.float32)


class Cases:
    """The cases written so far."""

    def __init__(self, out):
        self.out = out
        self.entries = []

    def add(self, name, model, inputs, per_step=(), states=None, large=False):
        """Writes the inputs of one case."""
        numpy.savez(self.out / f"{name}.npz", **inputs)
        self.entries.append(
            {
                "name": name,
                "model": model,
                "inputs": f"{name}.npz",
                "per_step": list(per_step),
                "states": states or {},
                "large": large,
            }
        )

    def finish(self):
        """Writes the list of cases."""
        (self.out / "cases.json").write_text(json.dumps({"cases": self.entries}, indent=1) + "\n")


def read_speech(path):
    """The samples of a 16-bit mono WAV file at 16 kHz, in [-1, 1)."""
    with wave.open(str(path)) as file:
        shape = (file.getframerate(), file.getnchannels(), file.getsampwidth())
        if shape != (16000, 1, 2):
            raise ValueError(f"{path}: rate, channels and bytes per sample are {shape}")
        frames = file.readframes(file.getnframes())
    return numpy.frombuffer(frames, "<i2").astype(numpy.float32) / 32768


def speech_windows(samples, rate):
    """Windows as silero-vad takes them, [step, 1, context + chunk]: each begins with the end of the
    one before, the first with silence."""
    chunk, context = SILERO_CHUNK[rate], SILERO_CONTEXT[rate]
    steps = len(samples) // chunk
    padded = numpy.concatenate([numpy.zeros(context, numpy.float32), samples])
    windows = [padded[step * chunk : step * chunk + context + chunk] for step in range(steps)]
    return numpy.stack(windows)[:, None, :]


def add_silero(cases, files):
    """The whole recording through every export, at both rates where there are two."""
    samples = {16000: read_speech(files["beckett.wav"])}
    samples[8000] = signal.resample_poly(samples[16000], 1, 2).astype(numpy.float32)
    windows = {rate: speech_windows(samples[rate], rate) for rate in samples}
    state = numpy.zeros((2, 1, 128), numpy.float32)
    carried = {"per_step": ["input"], "states": {"state": "stateN"}}

    for model, rates in [
        ("silero_vad", [16000, 8000]),
        ("silero_vad_op18_ifless", [16000, 8000]),
        ("silero_vad_16k_op15", [16000]),
    ]:
        for rate in rates:
            inputs = {"input": windows[rate], "state": state, "sr": numpy.array(rate, numpy.int64)}
            cases.add(f"{model}_at_{rate // 1000}k", f"{model}.onnx", inputs, **carried)
    for model in ["silero_vad_half", "silero_vad_openvino_16k"]:
        inputs = {"input": windows[16000], "state": state}
        cases.add(model, f"{model}.onnx", inputs, **carried)

    # Three places of the recording at once, two seconds of each.
    steps = 62
    places = windows[16000].reshape(-1, windows[16000].shape[-1])
    batch = numpy.stack([places[start : start + steps] for start in (0, 90, 180)], axis=1)
    state = numpy.zeros((2, 3, 128), numpy.float32)
    for model in ["silero_vad", "silero_vad_op18_ifless", "silero_vad_16k_op15"]:
        inputs = {"input": batch, "state": state, "sr": numpy.array(16000, numpy.int64)}
        cases.add(f"{model}_batch_of_3", f"{model}.onnx", inputs, **carried)

    # This one takes all windows in one call, and the two halves of the state each by its own name.
    state = state[:, :1]
    for name, windows in [("", places), ("_of_7", places[60:67])]:
        inputs = {"input": windows, "h": state[:1], "c": state[1:]}
        cases.add(f"silero_vad_16k_sequence{name}", "silero_vad_16k_sequence.onnx", inputs)


def add_magika(cases, files):
    """The beginning and the end of three files of different kinds, padded as magika does."""
    config = json.loads(files["magika_config.json"].read_text())
    begin, end, block = config["beg_size"], config["end_size"], config["block_size"]
    rows = []
    for name in ["beckett.wav", "magika_config.json", "LICENSE-MIT"]:
        content = files[name].read_bytes()
        row = numpy.full(begin + end, config["padding_token"], numpy.int32)
        head = content[:block].lstrip()[:begin]
        tail = content[-block:].rstrip()[-end:]
        row[: len(head)] = list(head)
        row[len(row) - len(tail) :] = list(tail)
        rows.append(row)
    cases.add("magika", "magika.onnx", {"bytes": numpy.stack(rows)})
    cases.add("magika_one", "magika.onnx", {"bytes": numpy.stack(rows[1:2])})


def plucked_string(midi, seconds):
    """A decaying tone with eight harmonics on the key `midi`."""
    time = numpy.arange(int(seconds * PITCH_RATE)) / PITCH_RATE
    frequency = 440 * 2 ** ((midi - 69) / 12)
    tone = numpy.zeros_like(time)
    for harmonic in range(1, 9):
        decay = numpy.exp(-time * (1.5 + harmonic))
        tone += decay * numpy.sin(2 * math.pi * harmonic * frequency * time) / harmonic
    # 5 ms of attack, to have no click.
    return tone * numpy.minimum(1, time / 0.005)


def add_basic_pitch(cases):
    """A rising broken chord over a held bass."""
    audio = numpy.zeros(PITCH_WINDOW)
    for onset, midi, seconds in [(0.1, 48, 1.7), (0.2, 69, 0.5), (0.6, 73, 0.5), (1.0, 76, 0.8)]:
        start = int(onset * PITCH_RATE)
        tone = plucked_string(midi, seconds)[: PITCH_WINDOW - start]
        audio[start : start + len(tone)] += 0.2 * tone
    audio = audio.astype(numpy.float32).reshape(1, -1, 1)
    cases.add("basic_pitch", "basic_pitch.onnx", {"serving_default_input_2:0": audio})
    backwards = numpy.concatenate([audio, audio[:, ::-1]])
    cases.add("basic_pitch_two", "basic_pitch.onnx", {"serving_default_input_2:0": backwards}, large=True)


def synthetic_eeg(seconds, seed):
    """Background whose power falls with frequency, an alpha rhythm that comes and goes, spindles of
    13 Hz each ten seconds, and in the middle third spike-and-wave at 3 Hz."""
    generator = numpy.random.Generator(numpy.random.PCG64(seed))
    count = seconds * EEG_RATE
    time = numpy.arange(count) / EEG_RATE
    spectrum = numpy.fft.rfft(generator.standard_normal(count))
    frequency = numpy.fft.rfftfreq(count, 1 / EEG_RATE)
    background = numpy.fft.irfft(spectrum / numpy.maximum(frequency, 0.5), count)
    background /= background.std()
    alpha = 0.7 * (1 + numpy.sin(2 * math.pi * 0.1 * time)) * numpy.sin(2 * math.pi * 10 * time)
    since_spindle = numpy.mod(time, 10) - 5
    spindles = 2 * numpy.exp(-((since_spindle / 0.4) ** 2)) * numpy.sin(2 * math.pi * 13 * time)
    phase = numpy.mod(3 * time, 1)
    spike_and_wave = 4 * numpy.sin(2 * math.pi * phase) + 8 * numpy.exp(-(((phase - 0.3) / 0.04) ** 2))
    in_seizure = (time > seconds / 3) & (time < 2 * seconds / 3)
    return background + alpha + spindles + numpy.where(in_seizure, spike_and_wave, 0)


def standardised(values, axis):
    """Less the mean, over the standard deviation, along `axis`."""
    return (values - values.mean(axis, keepdims=True)) / values.std(axis, keepdims=True)


def add_eeg(cases):
    """A minute of EEG for the seizure models, half a minute for the spindle detector."""
    eeg = numpy.stack([synthetic_eeg(60, 1), synthetic_eeg(60, 2)])
    _, _, power = signal.spectrogram(
        standardised(eeg, 1), EEG_RATE, nperseg=EEG_RATE, noverlap=EEG_RATE // 2, axis=1
    )
    spectrogram = standardised(power[:, :EEG_FREQUENCIES], 2).astype(numpy.float32)
    for model in ["eeg_seizure", "eeg_seizure_full"]:
        cases.add(model, f"{model}.onnx", {"x": spectrogram})
        cases.add(f"{model}_short", f"{model}.onnx", {"x": spectrogram[1:, :, 20:57]})

    eeg = synthetic_eeg(SPINDLE_SECONDS, 3)
    eeg = standardised(eeg, 0)
    scalogram = numpy.stack([numpy.abs(shannon_transform(eeg, scale)) for scale in SPINDLE_SCALES])
    inputs = {
        "raw_signal": eeg.astype(numpy.float32)[None, None],
        "spectrogram": standardised(scalogram, 1).astype(numpy.float32)[None],
    }
    cases.add("eeg_spindle", "eeg_spindle.onnx", inputs)
    twice = {name: numpy.concatenate([array, -array]) for name, array in inputs.items()}
    cases.add("eeg_spindle_two", "eeg_spindle.onnx", twice, large=True)


def shannon_transform(samples, scale):
    """The wavelet transform at `scale` (in samples) with the complex Shannon wavelet of bandwidth 6
    and centre 13, cut off at 2 scales to each side."""
    reach = int(2 * scale)
    argument = numpy.arange(-reach, reach + 1) / scale
    wavelet = math.sqrt(6) * numpy.sinc(6 * argument) * numpy.exp(2j * math.pi * 13 * argument)
    return signal.fftconvolve(samples, wavelet / math.sqrt(scale), mode="same")


def add_minilm(cases):
    """Two sentences in a batch, one partly masked."""
    ids = numpy.array(SENTENCES, numpy.int64)
    mask = numpy.ones_like(ids)
    for row, masked in zip(mask, MASKED_TOKENS):
        row[len(row) - masked :] = 0
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
    cases.add("minilm_int8", "minilm_int8.onnx", inputs)
    # The second sentence's words over and over, to lengths that no block of a kernel divides.
    words = ids[1, 1:-1]
    for length, large in [(3, False), (37, False), (128, True)]:
        row = numpy.concatenate([[101], numpy.resize(words, length - 2), [102]]).astype(numpy.int64)
        inputs = {
            "input_ids": row[None],
            "attention_mask": numpy.ones((1, length), numpy.int64),
            "token_type_ids": numpy.zeros((1, length), numpy.int64),
        }
        cases.add(f"minilm_int8_{length}_tokens", "minilm_int8.onnx", inputs, large=large)


def rendered(lines, width, height, size, slant=0):
    """Dark text on a light ground with a gradient, u8[height, width, 3]; with noise as a camera has."""
    generator = numpy.random.Generator(numpy.random.PCG64(width * height))
    ground = 200 + 40 * numpy.linspace(0, 1, width)[None, :, None] * numpy.ones((height, 1, 3))
    ground = (ground + 4 * generator.standard_normal(ground.shape)).clip(0, 255)
    image = Image.fromarray(ground.astype(numpy.uint8))
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size)
    pitch = height // len(lines)
    for i, line in enumerate(lines):
        draw.text((size // 2, i * pitch + (pitch - size) // 2), line, fill=(30, 20, 60), font=font)
    return numpy.asarray(image.rotate(slant, Image.Resampling.BILINEAR, fillcolor=(220, 220, 220)))


def planar(image):
    """f32[1, 3, height, width] in [0, 1], channels in the order blue, green, red."""
    return numpy.ascontiguousarray(image[None, :, :, ::-1].transpose(0, 3, 1, 2)).astype(numpy.float32) / 255


def add_ocr(cases):
    """Lines of text at several sizes for PP-OCR's detector, and single lines for its other networks."""
    for width, height, size in [(160, 64, 14), (320, 96, 22), (288, 224, 20), (640, 480, 40)]:
        image = planar(rendered(TEXT[: max(1, height // 64)], width, height, size, slant=1))
        image = (image - IMAGENET_MEAN[:, None, None]) / IMAGENET_DEVIATION[:, None, None]
        cases.add(f"ocr_detect_{width}_{height}", "ocr_detect.onnx", {"x": image}, large=True)
    lines = [planar(rendered([line], 320, 48, 30)) * 2 - 1 for line in TEXT]
    cases.add("ocr_recognise_320", "ocr_recognise.onnx", {"x": lines[0]}, large=True)
    cases.add("ocr_recognise_batch_of_3", "ocr_recognise.onnx", {"x": numpy.concatenate(lines)}, large=True)
    cases.add("ocr_recognise_104", "ocr_recognise.onnx", {"x": lines[2][..., 64:168]}, large=True)
    upright = planar(rendered([TEXT[0]], 192, 48, 24)) * 2 - 1
    turned = upright[:, :, ::-1, ::-1]
    cases.add("ocr_direction", "ocr_direction.onnx", {"x": upright}, large=True)
    both = numpy.concatenate([upright, turned, lines[1][..., :192]])
    cases.add("ocr_direction_batch_of_3", "ocr_direction.onnx", {"x": both}, large=True)


def add_captcha(cases):
    """Slanted words for ddddocr's two recognisers, and a page for its detector."""
    for width, word, slant in [(120, "7hK4", 8), (200, "Qw3xY9", -6)]:
        image = rendered([word], width, 64, 40, slant).mean(axis=2)[None, None]
        image = (image.astype(numpy.float32) / 255 - 0.5) / 0.5
        for model in ["captcha_float", "captcha_int8"]:
            cases.add(f"{model}_{width}", f"{model}.onnx", {"input1": image}, large=True)
    page = rendered(TEXT, 416, 416, 34, 4)[None, :, :, ::-1].transpose(0, 3, 1, 2).astype(numpy.float32)
    cases.add("captcha_detect", "captcha_detect.onnx", {"images": numpy.ascontiguousarray(page)}, large=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    files = {}
    for pair in arguments.file:
        name, path = pair.split("=", 1)
        files[name] = pathlib.Path(path)

    arguments.out.mkdir(parents=True, exist_ok=True)
    cases = Cases(arguments.out)
    add_silero(cases, files)
    add_magika(cases, files)
    add_basic_pitch(cases)
    add_eeg(cases)
    add_minilm(cases)
    add_ocr(cases)
    add_captcha(cases)
    cases.finish()


if __name__ == "__main__":
    main()
