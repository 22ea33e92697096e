"""Checksums of the content of archives; see :func:`imparo.data.named.content_checksum`."""

# Those of adult are without the artefact in the last row of each part.
CONTENTS: dict[str, dict[str, str]] = {
    "adult": {
        "X_train": "f5d342c3e955b75c8f09b803bf0d1501470886090f348cba270bdc58685a0cca",
        "y_train": "c7d507b236aa40b9681517584f579ed084d75c99c8bdc2fa40745bf5fc3f1296",
        "X_test": "74c9dd79bf8e5d2d1ff85452a65c9f940c83535b46bf1f6e9c59004930a46eb4",
        "y_test": "f0cf1f2ee1cbd8ada2d516806faac7ad4c92024b459896438e1dd44863db7e83",
    },
    "breastcancer_thesis": {
        "X_train": "03d842d5079bcc644dc689e4de9f686c24ef020cefd62e61b00730060668dcab",
        "y_train": "7d1b2605291ca1febdfab9c86c10f2e26592d56ac75c4fb6e1841975f7548483",
        "X_test": "54c6babdadbef17099bd4acd19ff722443f58e3c5188029ddcca173e88759f4c",
        "y_test": "602855ce8c2819d87a2d177909650e48660b41b104349ef784985c39b6e40a7c",
        "sklearn_row": "d26f04207023468550b7cc28684e99cc1e7db84433effa42101d8692dcd9d020",
    },
    "covtype": {
        "X": "ff27c92ac932a274a00fd2e14a0314f29f4479b14d5f3db8aa915b70b316b9f9",
        "y": "859dcb43dab95a6b7c07156be3f91957c96ac0077d4d0062bb20d6322a1c8a00",
    },
    "cpu_act": {
        "X": "0841e0e51733387463a1c1b05c325ebce24e8ed33f34ca2bb93c96dada995a49",
        "y": "f2647a2fbdcd8df6a079abd0b1edf41fe2b3b7f0f07f8c95b0579ab68ef2e500",
    },
    "cpu_small": {
        "X": "83c4e3cc12cea2fcca701fa819ed1b4a401a66c5a5f5fff79a337d6545822f56",
        "y": "f2647a2fbdcd8df6a079abd0b1edf41fe2b3b7f0f07f8c95b0579ab68ef2e500",
    },
    "icub_arm_ft_small": {
        "X": "06c2b3b7c0543be0935ff7d1eda622d1049b554cbff78ffbfa21437bd8f84a03",
        "Y": "6c32aa483b3858abd56ff6dcb79b17506795bebd92ad4bddab4c7854791b170c",
    },
    "icub_camera49_effnetlite0": {
        "X": "164356cd3af10946696f530c2d5f4b1dcff7c9ca30ce1f301273ac0ce6e9df39",
        "y": "e5c5e6bc1f419dcb85f36a2f96444b14162ff270e4255aa3bda7e4a98c647851",
        "view": "645ae6c67acac64170c98df52d972c83f612c17b7515cdee22ab2e4c2318dcf8",
        "object_id": "0f77cffd0abca6eea921c340c8280d3dfe9e1ccdaff089d41b26723ed14dd77e",
    },
    "icub_camera49_images64": {
        "X": "98c06eb0d237f110a9b57e6ad445dd63e5badcf2d323a3cf8fe5894954c861ea",
        "y": "e5c5e6bc1f419dcb85f36a2f96444b14162ff270e4255aa3bda7e4a98c647851",
        "view": "645ae6c67acac64170c98df52d972c83f612c17b7515cdee22ab2e4c2318dcf8",
        "object_id": "0f77cffd0abca6eea921c340c8280d3dfe9e1ccdaff089d41b26723ed14dd77e",
    },
    "ijcnn1": {
        "X_train": "be525c1149cb13b5bafca1b9ad5e42991765d9d04a11ee31c8e6eecc68fd5cba",
        "y_train": "0beb5383c6df90174359454d9dfdb92af9617462726b2a8943315d12da051560",
        "X_val": "6106b00e2f1b9f54990de0cc9d6ffc95483d65eb8b48425efe21f31b52e11658",
        "y_val": "492282705f8e486fb97fbe41a6e6a46aad1c2e8de51d3db4edfcacd4566e7a06",
    },
    "insurance_coil2000": {
        "X_train": "f513b0bf3b3b4f5bd75750d246ca9f4fe8839c693c54b0461646c2054411e055",
        "y_train": "8f7342d9fee83d986ce60c119e29d613b41ff104f4fb11411c8af6d716af050a",
        "X_test": "3fe7bcef6a4b84e04b10aea17720f935f57b054902357fc6796bc50c3a4dc533",
        "y_test": "2b4b4301f2221d4e76b862b82989409656365916c00413c249240ec4981a284c",
    },
    "mnist": {
        "X_train": "75ccd1dfb5d9c8cb161a03a80b484b5b144b8f2a310a8b3dc202b33018ec62a4",
        "y_train": "4dc0692fdf8feccb9cb2173b8210f44baef5ccc348a1c6d1303d9fdfb4afe6da",
        "X_test": "2849f942fcec14b3e7e17eb7f52012c0448b497cd7e67e523b897a00229fc5a5",
        "y_test": "3f19a3ad6012e2b3c0856a31d83ce62bb187da5f9cb7360bc918b3ae74937fd6",
    },
    "panda_dynamics": {
        "t": "0df6c66667f7df563e054bb7cfb483d73d4e17b00f6ec509532d0170eab224d7",
        "q": "1d67b452556bf9bb7e7b9655d6a8dc571768396535d8d505de15363ecb8908c2",
        "dq": "97bfa4796b7cd7a0d557adcd69787e689a427ca640597550fb18ad2730a10c8f",
        "ddq_derived": "00906b3286025e4c1bc191dcde463f82affc8a8d35eeced38491db470810bcf5",
        "tau": "cc881f4d0d55110d887c6b634a94173cb8049113ed9b2f988d5c15239bf5fca3",
    },
    "pumadyn32nh": {
        "X": "67210c9d1c87a7cfdb893def1a2976423e8b2a9478cf5e7647c85322ae1c939c",
        "y": "d5cce933da40de794f1d7e3901c51085f731e1e24ea5a9c2c1e5530327407435",
    },
    "pumadyn32nm": {
        "X": "da35ecccec6701b692af256b1b392ad49aeb59f70541f930b7c77f921ff28155",
        "y": "3ab7b78d67f190035e245c860a4db2599a5f4022ed842dd145ff38236c3b8a3f",
    },
    "sarcos_inv_test_only": {
        "X_test": "c220533d00ace7db99feb0c3ef5af6d6df1a2823ffbdea6a26b5fb13256c9135",
        "y_test": "37c41c95549c63ce2af7c185d4b844691aa11d1b4b8d543662d0b984923d0b48",
    },
    "tiago_dynamics": {
        "t": "c20eeca4900e5f78f6cf5a806f6229013be8bc47a5f6f82668da0020fd838478",
        "q": "ff3bcc9fc4707a0585e8e7ae013799e5c6ffa9f6e5c7a5319e2cf9e96a6a0919",
        "dq": "2bdb8cb18b0f782eb40346903954381e2833b3d03dbdc273918834686813a198",
        "effort": "ec2a2c05bd0b13d7e27b5acddaf9d1df833e6b670f1e018655ea9763d507b1f2",
    },
    "tx40_dynamics": {
        "motor_pos": "7022069b89fc7041ecc6973cecc38ffa45a579f36d8d4ff01514237a5348ffb7",
        "motor_current": "9d1e52b4c7505af409ab1c04810c16f749600d35c2e923bb927818f581b16e09",
    },
    "uci_kin40k": {
        "X": "9ec39f75dc32fd6d016f17b7b9fdf11adc5204303a5ccab85c7dc66d3ce9fa9d",
        "y": "ba9052c18b281ec08826a1935de2f50f3d82eb6ddc13a5446b1a6a9b56a829b8",
    },
    "ur10e_dynamics": {
        "t": "01a94c3dc7fb3c37a80b3d346d44f6d9fe95482b7a6c20a49a124ca4d024b17d",
        "q": "8f3b5f0bae413535f7d656c447de4173b9942cced1c7f8c01ba379c2671ea587",
        "dq": "9e350730c6dba1e8333a149a4de3b6f24b96deb6a3f237060d822e4bdb135db1",
        "ddq_derived": "ce76f1726e073b873cca43d5aa29f32206bcaec05584eb7a6bbef31f4e9e9cc2",
        "current": "4d45384ba82a3a2a94c08e01631827d855c8b25ac761252ae0ef0c762c11da1b",
        "current_des": "c00f585e47bf0a54ec86b30ac4aef7391115b3bda44174b023c5a865d5408322",
        "tau_des": "c1e4e9483e08636bb9432395b4f6ba0f2665f4328bea9bf8857b572b7740667c",
        "traj": "32bc6de3e607f2301d3a012cbc4266f91b23c953de19903c16d98dd456b17d2b",
    },
}
